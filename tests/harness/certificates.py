"""Certificates for tests, by the program openssl."""

import subprocess
from pathlib import Path


def certificates(folder: Path) -> dict[str, Path]:
    """A root, and certificates of a server and a client that it signs."""
    folder.mkdir(parents=True, exist_ok=True)

    def run(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test root", "-days", "1")
    for name, subject in (("server", "/CN=localhost"), ("client", "/CN=ann")):
        run("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        (folder / "names.cnf").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-extfile", "names.cnf")
        run("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    return {path.name: path for path in folder.iterdir()}
