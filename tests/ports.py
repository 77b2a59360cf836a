"""Ports for the processes that a test starts."""

import socket


def free_ports(count):
    """Ports of loopback that nobody listens at."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports
