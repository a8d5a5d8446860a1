"""A Dovecot server for tests, in processes of its own."""

from __future__ import annotations

import contextlib
import imaplib
import os
import pwd
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from external.ports import free_port
from harness.certificates import certificates

DOVECOT = shutil.which("dovecot") or shutil.which("dovecot", path="/usr/sbin")
# On a machine of CI it is there, or something is wrong.
needs_dovecot = pytest.mark.skipif(DOVECOT is None and "CI" not in os.environ, reason="dovecot is not installed")
USER, PASSWORD = "ann", 'a "pass" word'
START_SECONDS = 60

CONFIG = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
protocols = imap
listen = 127.0.0.1
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
auth_mechanisms = plain login
ssl = required
ssl_cert = <{folder}/tls/server.pem
ssl_key = <{folder}/tls/server.key
mail_location = maildir:{folder}/mail
first_valid_uid = 1
first_valid_gid = 1
passdb {{
  driver = passwd-file
  args = {folder}/users
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}
}}
service anvil {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {plain}
  }}
  inet_listener imaps {{
    port = {tls}
    ssl = yes
  }}
}}
"""


@dataclass(frozen=True)
class Imap:
    """A server that runs: its addresses, its root certificate, and its folder."""

    tls_url: str
    starttls_url: str
    roots: Path
    folder: Path

    def login(self) -> imaplib.IMAP4_SSL:
        """A session of the user."""
        context = ssl.create_default_context(cafile=str(self.roots))
        session = imaplib.IMAP4_SSL("localhost", int(self.tls_url.rpartition(":")[2]), ssl_context=context)
        session.login(USER, PASSWORD)
        return session

    def append(self, *messages: bytes, mailbox: str = "INBOX") -> None:
        """Put messages into a mailbox."""
        with self.login() as session:
            for message in messages:
                status, _ = session.append(mailbox, "", "", message)
                assert status == "OK"


@contextmanager
def imap_server() -> Iterator[Imap]:
    """A server with one user and an empty mailbox."""
    assert DOVECOT is not None
    # Not a folder of pytest's, which other users cannot enter: Dovecot reads no mail as root.
    folder = Path(tempfile.mkdtemp(prefix="astrocyte-imap-"))
    try:
        user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        import grp

        names = {"user": user.pw_name, "group": grp.getgrgid(user.pw_gid).gr_name}
        plain, tls = free_port(), free_port()
        certificates(folder / "tls")
        (folder / "users").write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
        config = folder / "dovecot.conf"
        numbers = {"uid": user.pw_uid, "gid": user.pw_gid, "plain": plain, "tls": tls}
        config.write_text(CONFIG.format(folder=folder, **names, **numbers))
        folder.chmod(0o755)
        for name in ("run", "state", "mail"):
            (folder / name).mkdir()
        if os.geteuid() == 0:
            os.chown(folder / "mail", user.pw_uid, user.pw_gid)
            os.chown(folder, user.pw_uid, user.pw_gid)
        with running(config, folder):
            imap = Imap(f"imaps://localhost:{tls}", f"imap://localhost:{plain}", folder / "tls" / "ca.pem", folder)
            wait_for(imap)
            yield imap
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(config: Path, folder: Path) -> Iterator[None]:
    """The processes of a server, in a group of their own."""
    command = [str(DOVECOT), "-F", "-c", str(config)]
    with (
        (folder / "start.log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True) as server,
    ):
        try:
            yield
        finally:
            server.terminate()
            try:
                server.wait(START_SECONDS)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(server.pid, signal.SIGKILL)


def wait_for(imap: Imap) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            with imap.login():
                return
        except (OSError, imaplib.IMAP4.error):
            if time.monotonic() > end:
                logs = [imap.folder / "start.log", imap.folder / "dovecot.log"]
                raise AssertionError("\n".join(log.read_text() for log in logs if log.exists())) from None
            time.sleep(0.05)
