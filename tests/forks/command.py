"""Ask the server in this folder for a process with these words and streams, and exit with its exit code.

For shells, which start a program by its path: ``python -I -S command.py SOCKET WORDS...`` starts in a hundredth of a
second, because it imports built-in modules only.
"""

import _signal
import _socket
import posix
import sys

path, *words = sys.argv[1:]
connection = _socket.socket(_socket.AF_UNIX)
connection.connect(path)
parts = [posix.getcwdb(), b"%d" % len(words)]
parts += [word.encode(sys.getfilesystemencoding(), "surrogateescape") for word in words]
parts += [b"%b=%b" % pair for pair in posix.environ.items()]
data = b"\0".join(parts)
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
connection.sendmsg([b"%9d" % len(data)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
connection.sendall(data)
answer = b""
while answer.count(b"\n") < 2 and (more := connection.recv(100)):
    answer += more
code = int(answer.split()[1])
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -code)
posix._exit(code)
