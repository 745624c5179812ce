"""The demonstration: a sample publisher on loopback, the proxy before it, and a reader's view.

`make demo`, or `python -m demo` in the project's environment. It works offline and leaves nothing behind.
"""
