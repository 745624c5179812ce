<?php
// Answers a request as index.php does behind a web server that rewrites every address to it.
require __DIR__ . '/site.php';
$_SERVER['SCRIPT_NAME'] = $_SERVER['PHP_SELF'] = '/index.php';
$_SERVER['SCRIPT_FILENAME'] = ABSPATH . 'index.php';
define('WP_USE_THEMES', true);
require ABSPATH . 'wp-settings.php';
wp();
require ABSPATH . WPINC . '/template-loader.php';
