<?php
// Runs the code on standard input inside the site.
require __DIR__ . '/site.php';
require ABSPATH . 'wp-settings.php';
eval(stream_get_contents(STDIN));
