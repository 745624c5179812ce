"""Blogs that real generators publish, in the layouts that people use, to look for lists of posts in.

    from tests.sites.built import SITES          # what builds a site, by its name; the name says its layout
    from tests.sites.server import serving

    site = SITES["hugo older posts"]()           # built when it is first asked for, once for a test run
    site.folder, site.feed_path                  # the files; where the feed is, cut to some entries
    site.truth                                   # {"/posts/on-bread/": Published("On bread", datetime(…)), …}
    site.has_list, site.list_pages               # ("/posts/", "/posts/page/2/", …); () where there is none
    site.get("/posts/")                          # Found(content_type, body), a path it redirects to, or None

    async with serving(site) as server:
        server.url, server.feed_url              # http://127.0.0.1:…
        server.requests                          # a Counter by path with query

In the files `http://site.invalid` stands for the server's URL. A test asks for a site by the fixture
`a_site`, which counts it among those that ran a generator: `a_site("hugo older posts")`. Where nothing may be
listed, the name begins with `no list: `.
"""
