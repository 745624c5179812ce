<?php
// Loads the WordPress of Debian's package from where it lies, with the database and the folder of one test run.
// The host's name is the request's, so that the site can also be asked through another address.
$folder = getenv('WORDPRESS_FOLDER');
$host = $_SERVER['HTTP_HOST'] ?? getenv('WORDPRESS_HOST');
if (PHP_SAPI === 'cli') {
    $_SERVER += ['REQUEST_URI' => '/', 'REQUEST_METHOD' => 'GET', 'SERVER_PROTOCOL' => 'HTTP/1.1'];
    $_SERVER['HTTP_HOST'] = $_SERVER['SERVER_NAME'] = $host;
}
define('ABSPATH', rtrim(getenv('WORDPRESS_FILES'), '/') . '/');
define('WP_CONTENT_DIR', "$folder/wp-content");
define('WP_HOME', "http://$host");
define('WP_SITEURL', "http://$host");
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', "localhost:$folder/database.sock");
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {
    define("{$name}_KEY", $name);
    define("{$name}_SALT", $name);
}
// Nothing may reach out, and nothing may happen behind a test's back.
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
$table_prefix = 'wp_';
