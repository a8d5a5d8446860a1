from pathlib import Path

import pytest
from pydantic import BaseModel

from astrocyte.config import DedupSettings, Settings, load_settings
from astrocyte.errors import ConfigError
from astrocyte.policy.settings.bank_settings import Overrides


def write(folder: Path, text: str) -> Path:
    path = folder / "astrocyte.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_need_no_source() -> None:
    settings = load_settings(environ={})
    assert settings.vector_store == "sqlite"
    assert settings.homeostasis.retain_max_content_bytes == 102_400
    assert settings.recall.fusion_method == "dbsf"


def test_later_sources_win(tmp_path: Path) -> None:
    path = write(tmp_path, "server:\n  port: 1\n  host: 127.0.0.2\nrecall:\n  rank_constant: 10\n")
    environ = {"ASTROCYTE_SERVER__PORT": "2", "ASTROCYTE_RECALL__WEIGHTS__KEYWORD": "3", "HOME": "/"}
    settings = load_settings(path, environ=environ, overrides={"server": {"port": 3}})
    assert (settings.server.port, settings.server.host) == (3, "127.0.0.2")
    assert settings.recall.rank_constant == 10.0
    assert settings.recall.weights.keyword == 3.0
    assert load_settings(path, environ=environ).server.port == 2


def test_an_unknown_key_is_named_with_its_line_and_the_nearest(tmp_path: Path) -> None:
    path = write(tmp_path, "vector_store: in_memory\nserver:\n  reflection: true\n  prot: 1\n")
    with pytest.raises(
        ConfigError, match=r"line 4: server\.prot is not a setting; did you mean server\.port\?"
    ) as caught:
        load_settings(path, environ={})
    assert caught.value.metadata == {"key": "server.prot", "file": str(path), "line": "4"}


def test_an_unknown_key_of_another_section_is_found(tmp_path: Path) -> None:
    path = write(tmp_path, "retain:\n  overfech: 3\n")
    with pytest.raises(ConfigError, match=r"did you mean recall\.overfetch\?"):
        load_settings(path, environ={})


def test_an_unknown_key_without_a_like_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"xyzzy is not a setting; expected one of access_control"):
        Settings.from_mapping({"xyzzy": 1})


def test_unknown_keys_in_lists_are_found(tmp_path: Path) -> None:
    path = write(tmp_path, "auth:\n  api_keys:\n    - name: a\n      sha265: b\n")
    with pytest.raises(
        ConfigError, match=r"line 4: auth\.api_keys\.0\.sha265 .* did you mean auth\.api_keys\.0\.sha256\?"
    ):
        load_settings(path, environ={})


def test_an_unknown_variable_is_an_error_and_others_are_left_alone() -> None:
    with pytest.raises(ConfigError, match=r"ASTROCYTE_SERVER__PROT is not a setting; did you mean server\.port"):
        load_settings(environ={"ASTROCYTE_SERVER__PROT": "1"})
    environ = {"ASTROCYTE_CONFIG": "x", "ASTROCYTE_ADDRESS": "y", "ASTROCYTE_TOKEN": "z", "PATH": "/"}
    assert load_settings(environ=environ) == load_settings(environ={})


def test_a_variable_that_should_be_json() -> None:
    with pytest.raises(ConfigError, match="JSON"):
        load_settings(environ={"ASTROCYTE_AUTH__API_KEYS": "[{"})


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"server": {"port": 70_000}}, "server.port"),
        ({"server": {"port": "x"}}, "server.port"),
        ({"provider_tier": "engine"}, "provider_tier"),
        ({"llm_provider": ""}, "llm_provider"),
        ({"llm_provider_config": "sk-1"}, "llm_provider_config"),
        ({"vector_store": ""}, "vector_store"),
        ({"signal_quality": {"dedup": {"similarity_threshold": 1.5}}}, "signal_quality.dedup.similarity_threshold"),
        ({"signal_quality": {"dedup": {"similarity_threshold": 0}}}, "signal_quality.dedup.similarity_threshold"),
        ({"recall": {"dedup_threshold": 0.0}}, "recall.dedup_threshold"),
        ({"retain": {"chunk_tokens": 32, "overlap_tokens": 17}}, "retain"),
        ({"recall": {"rank_constant": 0}}, "recall.rank_constant"),
        ({"recall": {"weights": {"keyword": float("nan")}}}, "recall.weights.keyword"),
        ({"server": {"tls_cert_file": "a.pem"}}, "server"),
        ({"limits": {"tags": 0}}, "limits.tags"),
    ],
)
def test_values_out_of_range_are_named(values: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.from_mapping(values)
    assert caught.value.metadata["key"] == key
    assert key in caught.value.message


def test_a_secret_in_the_wrong_place_is_not_repeated() -> None:
    keys = [{"name": "a", "sha256": "the-secret-itself", "principal": "p"}]
    with pytest.raises(ConfigError) as caught:
        Settings.from_mapping({"auth": {"api_keys": keys}})
    assert "the-secret-itself" not in str(caught.value)
    options = {"api_key": "sk-1"}
    with_options = {"embedding": {"provider": "openai", "options": options}, "llm_provider_config": options}
    assert "sk-1" not in repr(Settings.from_mapping(with_options))
    for wrong in ({"embedding": {"options": "sk-1"}}, {"llm_provider_config": "sk-1"}):
        with pytest.raises(ConfigError) as caught:
            Settings.from_mapping(wrong)
        assert "sk-1" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("server: [", "not valid YAML"),
        ("- a\n- b\n", "mapping"),
        ("server:\n  port: 1\nserver:\n  port: 2\n", "line 3: server is set twice"),
    ],
)
def test_files_that_are_no_settings(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(write(tmp_path, text), environ={})


def test_a_missing_file_and_a_binary_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_settings(tmp_path / "none.yaml", environ={})
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_settings(path, environ={})


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, "# nothing yet\n"), environ={}) == load_settings(environ={})


def test_settings_are_frozen() -> None:
    settings = load_settings(environ={})
    with pytest.raises(ValueError, match="frozen"):
        settings.data_dir = Path("elsewhere")  # type: ignore[misc] # the point


def test_every_limit_says_what_it_is() -> None:
    def check(model: type[BaseModel], path: str) -> None:
        assert model.__doc__, path
        for name, field in model.model_fields.items():
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                check(field.annotation, f"{path}.{name}")
            else:
                assert field.description or name in {"api_keys", "semantic", "keyword", "temporal"}, f"{path}.{name}"

    check(Settings, "settings")


BANKS = """
homeostasis:
  recall_max_tokens: 4096
  retain_max_content_bytes: 1000
signal_quality:
  dedup:
    enabled: true
    similarity_threshold: 0.9
    action: update
banks:
  sensitive-customer:
    homeostasis:
      retain_max_content_bytes: 10
    signal_quality:
      dedup:
        action: skip
  quiet: {}
"""


def test_a_bank_takes_what_it_does_not_say_from_the_whole(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, BANKS), environ={}, overrides={"homeostasis": {"recall_max_tokens": 7}})
    overrides = Overrides(settings)
    own = overrides.of["sensitive-customer"]
    assert (own.homeostasis.recall_max_tokens, own.homeostasis.retain_max_content_bytes) == (7, 10)
    assert own.signal_quality.dedup == DedupSettings(similarity_threshold=0.9, action="skip")
    for other in ("quiet", "no-such-bank", "Sensitive-Customer"):
        assert overrides.of[other].homeostasis == settings.homeostasis
        assert overrides.of[other].signal_quality == settings.signal_quality
    assert overrides.of["sensitive-customer"] is own
    assert Settings.from_mapping(settings.model_dump()) == settings


@pytest.mark.parametrize(
    ("bank", "key", "message"),
    [
        ("x:\n    homeostasis:\n      recal_max_tokens: 1", "homeostasis.recal_max_tokens", r"recall_max_tokens\?"),
        ("x:\n    homeostais: {}", "homeostais", r"did you mean banks\.x\.homeostasis\?"),
        ("x:\n    server:\n      port: 1", "server", r"did you mean server\?"),
        ("x:\n    homeostasis:\n      recall_max_tokens: 0", "homeostasis.recall_max_tokens", r"greater than or equal"),
        ("x:\n    homeostasis: 3", "homeostasis", "valid dictionary"),
    ],
)
def test_what_is_wrong_in_a_bank_is_named_with_its_line(tmp_path: Path, bank: str, key: str, message: str) -> None:
    path = write(tmp_path, f"banks:\n  {bank}\n")
    with pytest.raises(ConfigError, match=message) as caught:
        load_settings(path, environ={})
    line = bank.count("\n") + 2 if key != "server" else 3
    assert caught.value.metadata == {"key": f"banks.x.{key}", "file": str(path), "line": str(line)}


def test_a_bank_id_that_no_bank_can_have() -> None:
    with pytest.raises(ConfigError, match="pattern") as caught:
        Settings.from_mapping({"banks": {"a b": {}}})
    assert caught.value.metadata["key"] == "banks.a b"


# The block of a bank as the specification of the policies prints it, beside limits of the whole.
SHORT = """
homeostasis:
  recall_max_tokens: 4096
  retain_max_content_bytes: 102400
  rate_limits:
    retain_per_minute: 60
    recall_per_minute: 120
    global_per_minute: 300
  quotas:
    retain_per_day: 10000
    storage_bytes_per_bank: null
banks:
  sensitive-customer:
    homeostasis:
      retain_per_minute: 10
"""


def test_a_rate_of_a_bank_may_be_said_in_short(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, SHORT), environ={})
    own = settings.banks["sensitive-customer"].homeostasis.rate_limits
    assert (own.retain_per_minute, own.recall_per_minute) == (10, 120)
    assert settings.homeostasis.rate_limits.retain_per_minute == 60
    assert settings.homeostasis.quotas.storage_bytes_per_bank is None
    long = SHORT.replace("retain_per_minute: 10", "rate_limits: {retain_per_minute: 10}")
    assert load_settings(write(tmp_path, long), environ={}) == settings
    for source in ({"overrides": {"banks": {"sensitive-customer": {"homeostasis": {"retain_per_minute": 7}}}}},):
        later = load_settings(write(tmp_path, SHORT), environ={}, **source)
        assert later.banks["sensitive-customer"].homeostasis.rate_limits.retain_per_minute == 7
    environ = {"ASTROCYTE_BANKS": '{"sensitive-customer": {"homeostasis": {"recall_per_minute": 8}}}'}
    later = load_settings(write(tmp_path, SHORT), environ=environ)
    assert later.banks["sensitive-customer"].homeostasis.rate_limits.recall_per_minute == 8


@pytest.mark.parametrize(
    ("homeostasis", "message"),
    [
        ("{retain_per_minute: 10, rate_limits: {retain_per_minute: 10}}", r"line 3: banks\.x\..* is set twice"),
        ("{retain_per_minute: 0}", r"line 3: banks\.x\.homeostasis\.rate_limits\.retain_per_minute"),
        ("{rate_limits: {global_per_minute: 3}}", r"line 3: .*global_per_minute cannot be set per bank"),
        ("{quotas: {database: q.db}}", r"line 3: .*database cannot be set per bank"),
        ("{reain_per_minute: 3}", r"line 3: .*did you mean"),
    ],
)
def test_rates_of_a_bank_that_cannot_be(tmp_path: Path, homeostasis: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(write(tmp_path, f"banks:\n  x:\n    homeostasis: {homeostasis}\n"), environ={})


def test_the_short_form_is_for_banks_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean homeostasis\.rate_limits\.retain_per_minute\?"):
        load_settings(write(tmp_path, "homeostasis:\n  retain_per_minute: 10\n"), environ={})


# The blocks of the policies' specification, as it prints them.
PRINTED = """
homeostasis:
  recall_max_tokens: 4096 # Hard ceiling on recall result tokens
  retain_max_content_bytes: 102400 # Max content size per retain call (100KB)
  rate_limits:
    retain_per_minute: 60
    recall_per_minute: 120
    global_per_minute: 300
  quotas:
    retain_per_day: 10000
    storage_bytes_per_bank: null
signal_quality:
  dedup:
    enabled: true
    similarity_threshold: 0.95
    action: skip
  scoring:
    enabled: false
    min_score: 0.3
    action: reject
  noisy_bank:
    enabled: true
    retain_spike_multiplier: 5.0
    min_avg_content_length: 20
    max_dedup_rate: 0.8
    action: warn
escalation:
  circuit_breaker:
    failure_threshold: 5
    recovery_timeout_seconds: 30
    half_open_max_calls: 2
  degraded_mode: empty_recall
"""


def test_the_printed_blocks_load_and_are_the_defaults_but_for_the_limits(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, PRINTED), environ={})
    whole = Settings.from_mapping({})
    assert settings.signal_quality == whole.signal_quality
    assert settings.escalation == whole.escalation
    assert settings.homeostasis.rate_limits.global_per_minute == 300
    assert whole.homeostasis.rate_limits.global_per_minute is None


@pytest.mark.parametrize(
    "own",
    [
        {"escalation": {"circuit_breaker": {"failure_threshold": 1}}},
        {"escalation": {"queue_limit": 1}},
        {"escalation": {"cache_entries": 1}},
    ],
)
def test_what_there_is_once_cannot_differ(own: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="cannot be set per bank"):
        Settings.from_mapping({"banks": {"x": own}})


def written(tmp_path: Path, text: str, **environ: str) -> Settings:
    (tmp_path / "settings.yaml").write_text(text)
    return load_settings(tmp_path / "settings.yaml", environ=environ)


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        ("data_dir: ${DATA}", {"DATA": "/srv/a"}, "/srv/a"),
        ("data_dir: ${DATA:-/srv/b}", {}, "/srv/b"),
        ("data_dir: ${DATA:-/srv/b}", {"DATA": ""}, "/srv/b"),
        ("data_dir: ${DATA:-/srv/b}", {"DATA": "/srv/a"}, "/srv/a"),
        ("data_dir: ${DATA:-}x", {}, "x"),
        ('data_dir: "${A}/${B}"', {"A": "a", "B": "b"}, "a/b"),
        ("data_dir: a$${DATA}", {"DATA": "x"}, "a${DATA}"),
        ("data_dir: ${DATA}", {"DATA": "${OTHER}"}, "${OTHER}"),
        ("data_dir: ${DATA}", {"DATA": "a: [b"}, "a: [b"),
        ("data_dir: |\n  ${DATA}\n", {"DATA": "a"}, "a\n"),
        ("data_dir: cost$5", {}, "cost$5"),
    ],
)
def test_variables_are_put_into_a_file(tmp_path: Path, text: str, environ: dict[str, str], expected: str) -> None:
    assert str(written(tmp_path, text, **environ).data_dir) == expected


def test_variables_become_numbers_and_truths(tmp_path: Path) -> None:
    text = "read_only: ${RO}\nserver:\n  port: ${PORT}\nllm_provider_config: {api_key: '${KEY}'}\n"
    settings = written(tmp_path, text, RO="true", PORT="50099", KEY="0123")
    assert (settings.read_only, settings.server.port) == (True, 50_099)
    assert settings.llm_provider_config == {"api_key": "0123"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("server:\n  host: ${HOST}", r"settings\.yaml, line 2: environment variable HOST is not set"),
        ("llm_provider: x\nbanks:\n  b: {profile: '${P}'}", "line 3: environment variable P is not set"),
        ("auth:\n  api_keys:\n    - name: ${N}", "line 3: environment variable N is not set"),
        ("data_dir: ${1X}", "line 1: expected"),
        ("data_dir: ${DATA", "line 1: expected"),
        ("data_dir: ${}", "line 1: expected"),
    ],
)
def test_a_variable_that_is_missing_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        written(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "mental_model_store: none",
        "mental_model_store: null",
    ],
)
def test_features_that_are_not_built_may_be_turned_off(tmp_path: Path, text: str) -> None:
    assert written(tmp_path, text) == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mental_model_store: postgres", "line 1: mental_model_store: mental models are stored with the memories"),
    ],
)
def test_a_feature_that_is_not_built_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        written(tmp_path, text)


def test_an_alias_is_substituted_once(tmp_path: Path) -> None:
    text = "llm_provider_config: {a: &key '${KEY}', b: *key}\n"
    assert written(tmp_path, text, KEY="${OTHER}").llm_provider_config == {"a": "${OTHER}", "b": "${OTHER}"}
    text = "llm_provider_config: {a: &key '$${KEY}', b: *key}\n"
    assert written(tmp_path, text, KEY="x").llm_provider_config == {"a": "${KEY}", "b": "${KEY}"}


@pytest.mark.parametrize("environ", [{}, {"A": "a"}])
def test_a_default_contains_no_variable(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"settings\.yaml, line 2: the default of A contains \$\{"):
        written(tmp_path, "\ndata_dir: ${A:-${B}}", **environ)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("!!python/name:os.system x", "could not determine a constructor"),
        ("2020-13-45", "expected a valid timestamp"),
        ("!!int ''", "expected a valid int"),
        ("!!bool maybe", "expected a valid bool"),
        ("9" * 5_000, "expected a valid int"),
        ("{? [a] : b}", "unhashable key"),
        ("&a [*a]", "do not contain themselves"),
        ("&a {b: {c: *a}}", "do not contain themselves"),
        ("[" * 5_000 + "]" * 5_000, "nested too deeply"),
    ],
)
def test_a_value_that_cannot_be_constructed_is_named_with_its_line(tmp_path: Path, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"settings\.yaml, line 2: .*{message}"):
        written(tmp_path, f"read_only: true\nllm_provider_config: {{x: {value}}}\n")


def test_aliases_of_aliases_nest_no_deeper(tmp_path: Path) -> None:
    chain = "".join(f"  k{n}: &a{n} {'[' * 40}{f'*a{n - 1}' if n else ''}{']' * 40}\n" for n in range(40))
    with pytest.raises(ConfigError, match="nested too deeply"):
        written(tmp_path, f"llm_provider_config:\n{chain}")
