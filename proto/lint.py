"""Check the protocol with buf: lint, format, and breaking changes against a git revision.

    python proto/lint.py                    lint and format
    python proto/lint.py --against v1.2.0   breaking changes as well

Google's files in proto/google are a second module of a temporary workspace, to which our rules do not apply.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
MODULES = "\nmodules:\n  - path: api\n  - path: google_apis\n"


def workspace(folder: Path, protos: Path) -> Path:
    """Lay out ``protos`` and Google's files as two modules under the rules of buf.yaml; returns the folder."""
    shutil.copytree(protos / "astrocyte", folder / "api" / "astrocyte")
    # Revisions before it had no such folder.
    shutil.copytree(ROOT / "google", folder / "google_apis" / "google")
    (folder / "buf.yaml").write_text((ROOT / "buf.yaml").read_text(encoding="utf-8") + MODULES, encoding="utf-8")
    return folder


def buf(folder: Path, *arguments: str) -> bool:
    """Run buf in a workspace; True when it has nothing to say."""
    program = shutil.which("buf", path=str(Path(sys.executable).parent)) or "buf"
    command = [program, *arguments]
    return subprocess.run(command, cwd=folder, check=False).returncode == 0


def earlier(folder: Path, revision: str) -> Path | None:
    """The protocol at a git revision, or None where the revision has none."""
    command = ["git", "archive", revision, "proto"]
    archive = subprocess.run(command, cwd=ROOT.parent, check=False, capture_output=True)
    if archive.returncode != 0:
        return None
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "proto"


def main() -> None:
    """Run from the command line; exits with 1 when a rule is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--against", metavar="REVISION", help="git revision that clients were built from")
    against = parser.parse_args().against
    with tempfile.TemporaryDirectory() as folder:
        now = workspace(Path(folder) / "now", ROOT)
        ours = ("--path", "api/astrocyte")
        sound = [buf(now, "lint", *ours), buf(now, "format", "--diff", "--exit-code", *ours)]
        if against:
            before = earlier(Path(folder) / "archive", against)
            if before is None:
                sys.exit(f"revision {against} holds no protocol to compare with")
            sound.append(buf(now, "breaking", "--against", str(workspace(Path(folder) / "before", before))))
    sys.exit(not all(sound))


if __name__ == "__main__":
    main()
