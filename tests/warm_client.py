"""`python -I -S warm_client.py SOCKET -m MODULE …`: what a copy of the warm process does and ends
with (tests/warm.py)."""

import marshal
import os
import resource
import socket
import sys

connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
connection.connect(sys.argv[1])
request = {"arguments": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}
request["largest"] = resource.getrlimit(resource.RLIMIT_FSIZE)
socket.send_fds(connection, [marshal.dumps(request)], [0, 1, 2])
for stream in (0, 1, 2):  # whoever reads them waits for the copy alone
    os.close(stream)
status = int(connection.recv(100) or b"1")
if status < 0:  # of a signal
    os.kill(os.getpid(), -status)
os._exit(status)
