"""A model in a process of its own: messages over a socket, the process, and its counterpart in the server."""
