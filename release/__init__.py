"""How a release is made: what `make dist`, `make image` and `make deb` run."""
