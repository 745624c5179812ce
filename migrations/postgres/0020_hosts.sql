-- 0020: no table of hosts. Whose turn it is at a publisher's host is a lease (0014), and what is known of the host
-- stands in it.
DROP TABLE IF EXISTS host;
