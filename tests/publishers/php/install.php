<?php
// Installs the site and fills it with the posts of tests/publishers/blog.py: IDs, dates, categories, tags, authors.
define('WP_INSTALLING', true);
require __DIR__ . '/site.php';
require ABSPATH . 'wp-settings.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install('Some Blog', 'admin', 'admin@example.org', true, '', 'password', 'en_US');
global $wpdb, $wp_rewrite;
foreach ([1, 2, 3] as $id) { // what every new site starts with
    wp_delete_post($id, true);
}
$wp_rewrite->set_permalink_structure('/%year%/%monthnum%/%postname%/');
$wp_rewrite->flush_rules(true);
$guest = wp_insert_user(['user_login' => 'guest', 'user_pass' => 'password', 'role' => 'author']);
$news = wp_insert_term('News', 'category', ['slug' => 'news']);
$long = wp_insert_term('Long', 'post_tag', ['slug' => 'long']);
// One statement for all: wp_insert_post takes 5 ms each.
$posts = $terms = [];
foreach (json_decode(stream_get_contents(STDIN)) as $post) {
    $posts[] = $wpdb->prepare(
        "(%d,%d,%s,%s,%s,'',%s,'publish',%s,%s,%s,'','','',%s,'post')",
        $post->id, $post->author === 'guest' ? $guest : 1, $post->date, $post->date, $post->content, $post->title,
        $post->slug, $post->date, $post->date, "http://blog.invalid/?p=$post->id"
    );
    $terms[] = sprintf('(%d,%d)', $post->id, $post->category === 'news' ? $news['term_taxonomy_id'] : 1);
    if ($post->tags) {
        $terms[] = sprintf('(%d,%d)', $post->id, $long['term_taxonomy_id']);
    }
}
$wpdb->query(
    "INSERT INTO $wpdb->posts (ID, post_author, post_date, post_date_gmt, post_content, post_excerpt, post_title,
     post_status, post_name, post_modified, post_modified_gmt, to_ping, pinged, post_content_filtered, guid, post_type)
     VALUES " . implode(',', $posts)
);
$wpdb->query("INSERT INTO $wpdb->term_relationships (object_id, term_taxonomy_id) VALUES " . implode(',', $terms));
foreach (['category', 'post_tag'] as $taxonomy) {
    wp_update_term_count_now(get_terms(['taxonomy' => $taxonomy, 'hide_empty' => false, 'fields' => 'tt_ids']), $taxonomy);
}
echo $wpdb->get_var("SELECT COUNT(*) FROM $wpdb->posts WHERE post_status = 'publish'");
