"""What `wholefeed doctor` looks at, one module a subject: what is gathered is judged by pure functions."""
