"""Settings of the gRPC server."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from astrocyte.config.limits import DEFAULT_ANSWER_BYTES, MOST_ANSWER_BYTES
from astrocyte.config.loading.section import Count, Seconds, Section


class ServerSettings(Section):
    """gRPC server."""

    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address to bind, or unix:PATH. Non-loopback addresses need TLS and credentials.",
    )
    port: int = Field(50051, ge=0, le=65535, description="Port; 0 selects a free port.")
    workers: int = Field(
        1,
        ge=1,
        le=64,
        description="Server processes on the data directory and the port; see [scaling](scaling.md). Limits of "
        "concurrency are those of each.",
    )
    tls_cert_file: Path | None = Field(None, description="PEM certificate chain; enables TLS.")
    tls_key_file: Path | None = Field(None, description="PEM private key of the certificate.")
    tls_client_ca_file: Path | None = Field(None, description="PEM root certificates; requires client certificates.")
    insecure: bool = Field(
        False, description="Allow non-loopback addresses without TLS or credentials. For private networks only."
    )
    reflection: bool = Field(True, description="Enable gRPC reflection.")
    drain_seconds: Seconds = Field(10.0, description="Time for active calls after SIGTERM.")
    read_concurrency: Count = Field(
        256, description="Concurrent reads; as many may wait, further calls are refused with a retry delay."
    )
    # Writes wait for the disk: more of them would delay reads without writing faster.
    write_concurrency: Count = Field(
        64, description="Concurrent writes; as many may wait, further calls are refused with a retry delay."
    )
    reflect_concurrency: Count = Field(
        64, description="Concurrent reflects; as many may wait, further calls are refused."
    )
    admin_concurrency: Count = Field(
        32, description="Concurrent admin calls; as many may wait, further calls are refused."
    )
    stream_concurrency: Count = Field(
        256, description="Open StreamRetain, Watch and WaitOperation calls, of each; further calls are refused."
    )
    archive_concurrency: Count = Field(4, description="Running exports and imports; further calls are refused.")
    read_deadline_seconds: Seconds = Field(5.0, description="Default deadline of reads and admin calls.")
    write_deadline_seconds: Seconds = Field(10.0, description="Default deadline of writes.")
    reflect_deadline_seconds: Seconds = Field(60.0, description="Default deadline of reflects.")
    max_connection_age_seconds: Seconds = Field(
        3_600.0, description="Connection age after which clients must reconnect, for load balancing."
    )
    max_message_bytes: int = Field(
        1_048_576, ge=1024, description="Maximum request size; larger requests fail with MESSAGE_TOO_LARGE."
    )
    max_answer_bytes: int = Field(
        DEFAULT_ANSWER_BYTES,
        ge=1024,
        le=MOST_ANSWER_BYTES,
        description="Maximum answer size. Pages of lists end before it; other answers beyond it fail with "
        "MESSAGE_TOO_LARGE. The default is the limit of gRPC clients, the maximum that of the Python client.",
    )

    @model_validator(mode="after")
    def _check_tls(self) -> ServerSettings:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("set both tls_cert_file and tls_key_file, or neither")
        if self.tls_client_ca_file is not None and self.tls_cert_file is None:
            raise ValueError("tls_client_ca_file needs tls_cert_file and tls_key_file")
        return self
