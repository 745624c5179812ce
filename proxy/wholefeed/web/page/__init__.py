"""What a person sees in a browser: pages made of templates, and their style and script."""
