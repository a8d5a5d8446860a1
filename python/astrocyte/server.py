"""The gRPC server and its HTTP gateway: ports, health, reflection, and stopping without losing anything.

    await serve(App(load_settings("astrocyte.yaml")), announce=print)

`serve` runs until SIGTERM or SIGINT; `Server` is the same in pieces, for programs that have a loop of their own.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import structlog

from astrocyte.api import RPCS, Backend, Concurrency
from astrocyte.app import App
from astrocyte.config import ServerSettings, Settings
from astrocyte.core import GrpcServer
from astrocyte.errors import ConfigError, DeadlineExceeded
from astrocyte.ingest import SourceRegistry
from astrocyte.model import Caller
from astrocyte.services.admission import Admission
from astrocyte.services.authentication import Authenticate, authenticator
from astrocyte.services.convert import descriptor_of
from astrocyte.services.draining import Draining
from astrocyte.services.health import HEALTH_SERVICE, Health, health_handler
from astrocyte.services.interceptors import Calls, Rules
from astrocyte.services.load_shedding import refusal, refusals
from astrocyte.services.method_limits import rules_of
from astrocyte.services.reflection import reflection_handlers
from astrocyte.services.servicer import Servicer
from astrocyte.services.transport import CallKind, Transport

if TYPE_CHECKING:
    # They come with extras.
    from astrocyte.gateway import Gateway
    from astrocyte.policy.observability.tracing import Tracing

UNIX_PREFIX = "unix:"

# Beside the admission: so many health checks at once, and as many calls of reflection, of watches of health and of
# methods that do not exist.
SPARE_CALLS = 256
# Calls of one kind that a connection may have at once, where fewer than this run: more of them wait for each other. A
# burst on one channel then fits into the places of the kind, which other connections can use as well.
CONNECTION_CALLS = 64
# What grpc itself takes by default: beyond it, it refuses in its own words.
RECEIVED_BYTES = 4 * 1_024 * 1_024
# A client that vanished without a word is noticed after these two: its streams hold memory and a place.
KEEPALIVE_SECONDS = 60.0
KEEPALIVE_TIMEOUT_SECONDS = 20.0

# How often the server looks whether the store still takes writes: probes come every few seconds.
HEALTH_SECONDS = 0.25
# Between GOAWAY and the first refusal: watchers of health hear that we stop, and clients of the connection move to
# another server. Calls that they sent before they knew are answered.
PAUSE_SECONDS = 0.25
# New objects between looks for cycles: those of some twenty calls. With four times as many, a look took up to 40 ms
# where calls are refused, each of which leaves a cycle.
GC_OBJECTS = 5_000
# How long a stopping server refuses calls that still come, once the others have ended.
SETTLE_SECONDS = 0.5
# How often a stopping server looks whether calls still run.
POLL_SECONDS = 0.02

log = structlog.get_logger("astrocyte.server")


def check_exposure(settings: Settings) -> None:
    """Refuse to listen where others can reach us without proving who they are.

    Raises:
        ConfigError: The address is not local, and neither TLS with credentials nor `insecure` is set.
    """
    server = settings.server
    hosts = [server.host] if settings.gateway.port is None else [server.host, settings.gateway.host]
    exposed = [host for host in hosts if not is_local(host)]
    if not exposed or server.insecure:
        return
    credentials = settings.auth.demanded or server.tls_client_ca_file is not None
    if server.tls_cert_file is not None and credentials:
        return
    missing = [
        name
        for name, present in (
            ("TLS (server.tls_cert_file, server.tls_key_file)", server.tls_cert_file is not None),
            ("credentials (auth.api_keys, auth.jwt, auth.required or server.tls_client_ca_file)", credentials),
        )
        if not present
    ]
    raise ConfigError(
        f"{exposed[0]} is reachable from other machines and the server has no {' and no '.join(missing)}; set them, "
        "listen on 127.0.0.1, or set server.insecure on a network that you trust",
        metadata={"host": exposed[0]},
    )


def check_webhooks(settings: Settings) -> None:
    """Refuse webhooks that nobody can reach.

    Raises:
        ConfigError: There is a webhook source and no gateway.
    """
    webhook = next((name for name, source in settings.sources.items() if source.type == "webhook"), None)
    if webhook is not None and settings.gateway.port is None:
        raise settings.refusal(("sources", webhook), "a webhook needs the HTTP gateway; set gateway.port")


def is_local(host: str) -> bool:
    """True if only this machine can reach ``host``: a loopback address or a unix socket. Other names are not local."""
    if host.startswith(UNIX_PREFIX) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server:
    """A gRPC server over a backend. Make it, `start` and `stop` it on one running event loop.

    Args:
        backend: Answers the requests.
        settings: How to listen, and whom to trust.
        healthy: Whether writes are taken; health is NOT_SERVING from when it says False.
        keys: Whom an API key that was made by call stands for; None knows none.
        tracing: Makes a span for each call, below that of its caller; None makes none.
        sources: The ingest sources; None has none.

    Raises:
        ConfigError: The address is exposed without credentials, or a webhook has no gateway.
    """

    def __init__(
        self,
        backend: Backend,
        settings: Settings,
        *,
        healthy: Callable[[], bool],
        keys: Callable[[str], Caller | None] | None = None,
        tracing: Tracing | None = None,
        sources: SourceRegistry | None = None,
    ) -> None:
        check_exposure(settings)
        check_webhooks(settings)
        self._sources = sources
        self._settings = settings.server
        # Other workers listen at the same port.
        self._shared = settings.server.workers > 1
        self._healthy = healthy
        self._watching: asyncio.Task[None] | None = None
        self._draining = Draining()
        self._rules = rules = rules_of(settings.server)
        authenticate = authenticator(settings, keys)
        calls = Calls(authenticate, self._draining, settings.server.max_message_bytes, tracing)
        servicer = Servicer(backend, self._draining)
        services: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = {}
        for rpc in RPCS.values():
            handler = calls.handler(descriptor_of(rpc), servicer.behaviour(rpc), rules[rpc.concurrency])
            services.setdefault(rpc.service, {})[rpc.name] = handler
        self._health = Health(list(services), self._draining)
        handlers = [grpc.method_handlers_generic_handler(name, methods) for name, methods in services.items()]
        handlers.append(health_handler(self._health))
        if settings.server.reflection:
            handlers += reflection_handlers([*services, HEALTH_SERVICE.full_name])
        native = _native(settings.server, rules, calls.prefix)
        self._transport = Transport(handlers, calls.refusal, calls.identify, native, settings.server.max_answer_bytes)
        self._gateway = self._make_gateway(settings, servicer, authenticate, tracing)
        self.http_address: str | None = None

    @property
    def waiting(self) -> dict[str, Callable[[], int]]:
        """The number of calls that wait for a place, by kind; thread-safe."""
        return {f"{kind}_calls": _waiting(rule.admission) for kind, rule in self._rules.items()}

    async def start(self) -> str:
        """Listen; returns the address to connect to, with the port that the system chose where it was 0.

        `http_address` is then the URL of the gateway, if there is one.

        Raises:
            ConfigError: An address cannot be bound, or a certificate cannot be read.
        """
        address = self._bind()
        if self._gateway is not None:
            self.http_address = await self._gateway.start()
        self._transport.start()
        await self._health.serve()
        self._watching = asyncio.create_task(self._watch_health(), name="astrocyte-health")
        return address

    async def stop(self, grace_seconds: float | None = None) -> None:
        """Turn health to NOT_SERVING and clients away, then refuse calls, end streams, let calls finish, and close.

        Clients are turned away first: one that balances over servers sends its calls to the others from then on, and a
        call that is refused before that fails for nothing.

        Args:
            grace_seconds: Calls that still run then are cancelled; writes that have begun complete all the same.
                None takes the setting.
        """
        grace = self._settings.drain_seconds if grace_seconds is None else grace_seconds
        end = time.monotonic() + grace
        if self._watching is not None:
            self._watching.cancel()
        await self._health.stop()
        self._transport.refuse_connections()
        if self._gateway is not None:
            self._gateway.refuse_connections()
        await asyncio.sleep(min(PAUSE_SECONDS, grace))
        self._draining.begin()
        # Looking now and then costs nothing while we serve; an event would cost every call that ends.
        while (left := end - time.monotonic()) > 0 and self._busy():  # noqa: ASYNC110
            await asyncio.sleep(min(POLL_SECONDS, left))
        await self._turn_away(min(left, SETTLE_SECONDS))
        # Answers that are on their way out still take a moment.
        if self._gateway is not None:
            await self._gateway.stop(max(left, POLL_SECONDS))
        await self._transport.stop(max(left, POLL_SECONDS))

    def _make_gateway(
        self, settings: Settings, servicer: Servicer, authenticate: Authenticate, tracing: Tracing | None
    ) -> Gateway | None:
        """The gateway that the settings ask for, with the places, credentials and health of this server."""
        if settings.gateway.port is None:
            return None
        try:
            from astrocyte.gateway import Gateway, Shared  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"the HTTP gateway needs {error.name}, which is not installed; install astrocyte-grpc[gateway]",
                metadata={"key": "gateway.port"},
            ) from error
        shared = Shared(
            servicer, authenticate, self._draining, self._rules, lambda: self._health.serving, tracing, self._sources
        )
        return Gateway(settings, shared, local=is_local(settings.gateway.host))

    async def _turn_away(self, seconds: float) -> None:
        """Refuse those that gRPC still has, until nobody comes: it would drop them with a code that nobody retries."""
        end = time.monotonic() + seconds
        refused = -1
        while refused != self._draining.refused and time.monotonic() < end:
            refused = self._draining.refused
            await asyncio.sleep(2 * POLL_SECONDS)

    async def _watch_health(self) -> None:
        """Turn health to NOT_SERVING once writes fail: a disk that failed is not trusted again by this process."""
        # Looking now and then costs nothing; the store fails on a thread that knows no loop.
        while self._healthy():  # noqa: ASYNC110
            await asyncio.sleep(HEALTH_SECONDS)
        log.error("not_serving", cause="the store takes no writes")
        await self._health.stop()

    def _busy(self) -> bool:
        return any(rule.admission.running or rule.admission.waiting for rule in self._rules.values())

    def _bind(self) -> str:
        host, port = self._settings.host, self._settings.port
        local = host.startswith(UNIX_PREFIX)
        target = host if local else f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            bound = self._transport.bind(target, shared=self._shared)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {target}: {error.strerror or error}", metadata={"address": target}
            ) from error
        return target if local else f"{target.rpartition(':')[0]}:{bound}"


def _waiting(admission: Admission) -> Callable[[], int]:
    return lambda: admission.waiting


def _native(settings: ServerSettings, rules: Mapping[Concurrency, Rules], id_prefix: str) -> GrpcServer:
    """The listening server: in plain text, or by TLS where there is a certificate."""
    kinds = {name: number for number, name in enumerate(rules)}
    methods: dict[str, tuple[bool, int | None]] = {
        f"/{rpc.service}/{rpc.name}": (not rpc.client_streaming, kinds[rpc.concurrency]) for rpc in RPCS.values()
    }
    checks = Admission("health", CONNECTION_CALLS, SPARE_CALLS - CONNECTION_CALLS)
    # Anybody may watch health, so watches must not keep places from single checks.
    methods |= {
        f"/{HEALTH_SERVICE.full_name}/{method.name}": (True, None if method.server_streaming else len(kinds))
        for method in HEALTH_SERVICE.methods
    }
    late = DeadlineExceeded("the deadline of the call has passed, or its request did not arrive completely in time")
    certificates, key = None, None
    if settings.tls_cert_file is not None and settings.tls_key_file is not None:
        key = _read(settings.tls_key_file)
        certificates = _read(settings.tls_cert_file)
    try:
        return GrpcServer(
            methods=methods,
            kinds=[*(_kind(rule.admission) for rule in rules.values()), _kind(checks, is_open=True)],
            deadline_exceeded=refusal(late),
            id_prefix=id_prefix,
            # Somewhat larger messages are received, and refused unparsed, so that the error can say what the limit is.
            max_message_bytes=max(settings.max_message_bytes, RECEIVED_BYTES),
            max_others=SPARE_CALLS,
            max_connection_age=settings.max_connection_age_seconds,
            keepalive=KEEPALIVE_SECONDS,
            keepalive_timeout=KEEPALIVE_TIMEOUT_SECONDS,
            certificates=certificates,
            key=key,
            client_roots=_read(settings.tls_client_ca_file) if settings.tls_client_ca_file else None,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _kind(admission: Admission, *, is_open: bool = False) -> CallKind:
    queued = admission.places > admission.limit
    per_connection = max(admission.limit, CONNECTION_CALLS) if queued else None
    return CallKind(admission.places, per_connection, is_open, refusals(admission))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", metadata={"file": str(path)}) from error


def _settle() -> None:
    """Tell the garbage collector that this process serves: about 5 % less work for each call.

    A recall makes some hundred objects and no cycles, so looking for cycles every 700 objects finds nothing; and what
    was loaded at the start stays.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_OBJECTS)


def server_of(app: App) -> Server:
    """The server of an application, whose metrics tell how many calls wait for a place.

    Raises:
        ConfigError: The address is exposed without credentials.
    """
    if app.settings.server.workers > 1 and app.follower is None:
        raise ConfigError(
            "server.workers is above 1, and this is one process; start it with `astrocyte serve`, or set workers to 1",
            metadata={"key": "server.workers"},
        )
    server = Server(
        app.backend,
        app.settings,
        healthy=lambda: app.healthy,
        keys=app.gate.keys.caller,
        tracing=app.telemetry.tracing,
        sources=app.sources,
    )
    app.telemetry.watch_queues(server.waiting)
    return server


async def serve(
    app: App, *, announce: Callable[[str], None] | None = None, stopped: asyncio.Event | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, drain, then close the application.

    Args:
        app: What answers, and how to listen.
        announce: Called with the address once the server listens, and with the URL of the gateway, if there is one.
        stopped: Ends the server as a signal does, when it is set.

    Raises:
        ConfigError: The server cannot listen as the settings say.
    """
    stopped = stopped or asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    try:
        server = server_of(app)
        address = await server.start()
        for number in signals:
            loop.add_signal_handler(number, stopped.set)
        app.start_purging()
        app.sources.start()
        metrics = app.telemetry.metrics
        if metrics is not None:
            log.info("serving_metrics", host=app.settings.observability.metrics_host, port=metrics.serve())
        _settle()
        for listening in filter(None, (address, server.http_address)):
            log.info("serving", address=listening)
            if announce is not None:
                announce(listening)
        await stopped.wait()
        log.info("draining", seconds=app.settings.server.drain_seconds)
        await app.sources.stop()
        await server.stop()
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
        await app.close()
    log.info("stopped")
