"""A relay between a client and a PostgreSQL server that can cut the line at a chosen moment."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import tempfile
import threading
from contextlib import suppress

from psycopg.conninfo import conninfo_to_dict

# The server does not get to see the COMMIT, or its answer gets lost, or after its answer the server says that it ends,
# in place of that it is ready, and its line is open a little longer.
BEFORE, AFTER, LAST_WORDS = "before", "after", "last words"
READY = b"Z\0\0\0\5I"
FIELDS = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
ENDING = b"E" + struct.pack("!I", 4 + len(FIELDS)) + FIELDS


class Proxy:
    """Listens on a socket of its own. `cut` says at how many of the next COMMITs to cut the line, and on which side."""

    def __init__(self, url: str) -> None:
        info = conninfo_to_dict(url)
        self._host, self._port = str(info["host"]), int(info.get("port") or 5432)
        self._folder = tempfile.mkdtemp(prefix="hf-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.path.join(self._folder, ".s.PGSQL.5432"))
        self._listener.listen()
        self._threads: list[threading.Thread] = []
        self.cut: list[str] = []
        self._ending: list[socket.socket] = []  # lines to servers whose next answer is their last
        self.url = f"postgresql:///{info['dbname']}?host={self._folder}&port=5432&user={info.get('user') or ''}"
        self._start(self._listen)

    def _start(self, work: object, *values: socket.socket) -> None:
        thread = threading.Thread(target=work, args=values, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _server(self) -> socket.socket:
        if self._host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(os.path.join(self._host, f".s.PGSQL.{self._port}"))
            return server
        return socket.create_connection((self._host, self._port))

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._server()
                self._start(self._from_client, client, server)
                self._start(self._from_server, client, server)

    def _from_client(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                if b"COMMIT" in data and self.cut:
                    where = self.cut.pop(0)
                    if where != LAST_WORDS:
                        if where == AFTER:
                            self._wait_for_commit(client, server, data)
                        break
                    self._ending.append(server)
                server.sendall(data)
        _hang_up(client, server)

    def _wait_for_commit(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        # The other direction is shut first, so that the answer cannot get through.
        _hang_up(client)
        server.sendall(data)
        server.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while server.recv(65_536):
                pass

    def _from_server(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if server in self._ending and data.endswith(READY):
                    client.sendall(data.removesuffix(READY) + ENDING)
                    return  # the other direction goes on until the client hangs up
                client.sendall(data)
        _hang_up(client, server)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)
        shutil.rmtree(self._folder)


def _hang_up(*lines: socket.socket) -> None:
    for line in lines:
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
        line.close()
