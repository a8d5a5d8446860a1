"""The schema's steps: applied once, whole or not at all, and never by the wrong version."""

import hashlib
from pathlib import Path

import apsw
import pytest

from astrocyte.errors import SchemaTooNew, StoreError
from astrocyte.stores.sqlite import open_store
from astrocyte.stores.sqlite.engine.data_directory import DATABASE
from astrocyte.stores.sqlite.engine.migrations import APPLICATION_ID, Migration, load_migrations, migrate

ONE = Migration(1, "one", "CREATE TABLE one (a INTEGER); INSERT INTO one VALUES (1);")
TWO = Migration(2, "two", "CREATE TABLE two (b INTEGER); INSERT INTO one VALUES (2);")
BROKEN = Migration(2, "two", "CREATE TABLE two (b INTEGER); INSERT INTO nowhere VALUES (2);")


@pytest.fixture
def connection(tmp_path: Path) -> apsw.Connection:
    return apsw.Connection(str(tmp_path / "db"))


def tables(connection: apsw.Connection) -> set[str]:
    return {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def test_steps_are_numbered_without_gaps() -> None:
    assert [migration.version for migration in load_migrations()] == list(range(1, len(load_migrations()) + 1))


# A step that was released is never edited: add another. Each new one gets its line here.
RELEASED = {
    1: "d96e9dbe8f3dd76cf8449ce2782b616aeb5bef3c5389da30de63ad4553479877",
    2: "c7ff5a13b29724bf443e15bd913f1a14136ad98db5998bfb30404329349e09a5",
    3: "1614dea71205482696b234b27a51103b8e607167e5a3c6616e94e947325d7d0e",
    4: "d2d5669a4f5e44f6e5cf15325ca15548b26a156f048421c91f1e4c6348dc287d",
    5: "9c9a8e69f7c0cfe8426eafd44ef1628b0aaa45c22faa04f7dcec8354a8a211b1",
    6: "a7a675afde73b8d3e2ae9841e432d8a89a6ad23d7fa903c83e0b0eec182c8f4f",
    7: "cecff1e51584d7ab709a6acbd2cb5914079f094f34c61c17647a3f7048b6350e",
    8: "8e9488e6d304973f83ea87b17274b2127b9039744fe90b2ab951ee50acbe0c23",
    9: "69d3bcf1f374d013444cd2d0a63dd434d28b559bbf628eab001c0cbec2246705",
    10: "ae3bdf743dc3af7327beda7be3f3302b914446d24827c9a0819e3bbc1eb45462",
    11: "91501baa1393cad8a441402bdf3482494315b30d5a9ddbbe379d07034a372993",
    12: "95efb20920b52972394d2c505288bc53fb585d34c2489a0ea2a1da27fd038126",
    13: "bbc2b6d6f05dd02ef0f4a3a3c791065b7940a5573c479156ac21f0ecc4493e2f",
    14: "d8e2b47cdb7d5d3f864f8b7edf90cbd6cc65512a84642dacf2c8c1518b6b2ca0",
    15: "f4f416ba260fc0709c53d1ee764e4f0d71affa613bed777e2c202bb26dde4f37",
    16: "8d5a1f72ee1b9c46a24de3630ea84bc8469c015839804795b523082c2076a98d",
    17: "acbc530120f0a074dbdb58bfcb7e10fd692068d3c7087f1dc0ac00b0ada86a16",
    18: "03059ab81b972265dece1a76120de54eafdcf818de213f797a93ef55e750fa18",
    19: "33b68bea1c21259b215f36f6c73b6edca52da2b7089172a7b5f0e6651f7d9e16",
    20: "5ce8b76ed1bd6e4b1064e2cb8dedbd6df7ee87e541bc4c6808e3d2f99527d7d9",
    21: "b2d35af6281c3224b32897bce80d591b6976966996425c948e1e3f689f3ef5ff",
    22: "62a8b2f66feeaf76127ea99387c1a79662a549a215b3ee0cc93810e76de0ca30",
    23: "55af25a4c35e640c698716be9e10df6070baea3944bf6243ca7081c8b0c79509",
    24: "26efebbcc87e6223432db6fe1a1841c4481e6338c91ee5f546091d3dac048082",
}


def test_released_steps_are_as_they_were() -> None:
    assert {migration.version: migration.checksum for migration in load_migrations()} == RELEASED


def test_each_step_is_applied_once(connection: apsw.Connection) -> None:
    assert migrate(connection, [ONE], 5) == 1
    assert migrate(connection, [ONE, TWO], 6) == 2
    assert migrate(connection, [ONE, TWO], 7) == 2
    assert connection.execute("SELECT a FROM one ORDER BY a").fetchall() == [(1,), (2,)]
    assert connection.execute("SELECT * FROM schema_migrations").fetchall() == [
        (1, "one", hashlib.sha256(ONE.sql.encode()).hexdigest(), 5),
        (2, "two", hashlib.sha256(TWO.sql.encode()).hexdigest(), 6),
    ]
    assert connection.pragma("application_id") == APPLICATION_ID


def test_a_step_that_fails_leaves_no_trace_and_is_taken_again(connection: apsw.Connection) -> None:
    with pytest.raises(apsw.SQLError):
        migrate(connection, [ONE, BROKEN], 5)
    assert tables(connection) == set()
    assert migrate(connection, [ONE], 6) == 1
    with pytest.raises(apsw.SQLError):
        migrate(connection, [ONE, BROKEN], 5)
    assert tables(connection) == {"schema_migrations", "one"}
    assert migrate(connection, [ONE, TWO], 6) == 2
    assert tables(connection) == {"schema_migrations", "one", "two"}


def test_a_killed_step_leaves_no_trace(tmp_path: Path) -> None:
    first = apsw.Connection(str(tmp_path / "db"))
    first.pragma("journal_mode", "WAL")
    migrate(first, [ONE], 5)
    first.execute("BEGIN IMMEDIATE")
    first.execute(TWO.sql)
    # What a kill leaves is the files as they are now.
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tmp_path.glob("db*"):
        (copy / file.name).write_bytes(file.read_bytes())
    second = apsw.Connection(str(copy / "db"))
    assert tables(second) == {"schema_migrations", "one"}
    assert migrate(second, [ONE, TWO], 6) == 2
    first.execute("ROLLBACK")


def test_an_edited_step_is_refused(connection: apsw.Connection) -> None:
    migrate(connection, [ONE], 5)
    with pytest.raises(StoreError, match="differs from the one"):
        migrate(connection, [Migration(1, "one", ONE.sql + " ")], 6)


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    open_store(tmp_path, ballast_bytes=0).close()
    path = tmp_path / DATABASE
    raw = apsw.Connection(str(path))
    raw.execute("INSERT INTO schema_migrations VALUES (999, 'later', 'x', 0)")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match="999") as caught:
        open_store(tmp_path, ballast_bytes=0)
    assert caught.value.metadata["found"] == "999"
    assert path.read_bytes() == before
    # The directory was let go of: the right version may open it.
    raw = apsw.Connection(str(path))
    raw.execute("DELETE FROM schema_migrations WHERE version = 999")
    raw.close()
    open_store(tmp_path, ballast_bytes=0).close()


def test_the_file_of_another_program_is_refused(tmp_path: Path) -> None:
    raw = apsw.Connection(str(tmp_path / DATABASE))
    raw.execute("CREATE TABLE notes (text TEXT)")
    raw.close()
    with pytest.raises(StoreError, match="another program"):
        open_store(tmp_path, ballast_bytes=0)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"not a database, but longer than a header of one hundred bytes" * 10)
    with pytest.raises(StoreError, match="database"):
        open_store(tmp_path, ballast_bytes=0)
