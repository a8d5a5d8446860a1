"""The configuration of deploy/patroni: Patroni accepts it, promotes the synchronous standby, and takes a node back."""

from __future__ import annotations

import pytest

from patroni_cluster import PATRONI, patroni_cluster, patroni_node, wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(900), PATRONI]


def test_the_configuration_is_accepted() -> None:
    with patroni_node() as node:
        done = node.validate()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_standby_is_promoted_and_the_former_primary_follows_it() -> None:
    with patroni_cluster() as cluster:
        first, second = cluster.nodes
        assert first.execute("SHOW synchronous_standby_names") == [("db2",)]
        first.execute("CREATE TABLE kept (number int)")
        first.execute("INSERT INTO kept VALUES (1)")
        # Both processes, or Patroni would start it in place.
        first.kill()
        wait_until(lambda: second.promoted, second)
        assert second.execute("SELECT number FROM kept") == [(1,)]
        second.execute("INSERT INTO kept VALUES (2)")
        first.start()
        cluster.wait_for_standby(second)
        wait_until(lambda: first.execute("SELECT count(*) FROM kept") == [(2,)], first)
