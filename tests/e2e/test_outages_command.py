"""``pipistrelle failures``: generate, show and fit outages, and errors."""

import gzip

import pytest

pytest.importorskip("scipy")
GENERATE = ("failures", "generate", "--failures", "weibull,mtbf=10d,shape=0.7", "--repair", "lognormal,mttr=1h,sigma=1")
SHORT = ("--nodes", "40", "--horizon", "1y", "--seed", "7")


def test_a_stream_is_made_shown_and_fitted(shell):
    """Equal seeds give equal bytes, also compressed; the fitted parameters are near the true ones."""
    out = shell.run(*GENERATE, *SHORT, "-o", "a.csv").ok().out
    shell.run(*GENERATE, *SHORT, "-o", "b.csv.gz").ok()
    first = (shell.folder / "a.csv").read_bytes()

    assert out.endswith(" outages of 40 nodes written to a.csv\n")
    assert gzip.decompress((shell.folder / "b.csv.gz").read_bytes()) == first
    assert first.startswith(b"# nodes: 40, end: 31557600.0 s\nnode,down,up,cause\n")

    shown = shell.run("failures", "show", "a.csv").ok().out
    for heading in ("name", "outages", "class", "worst nodes", "causes", "hazard", "clustering", "repair", "picture"):
        assert f"\n{heading} " in f"\n{shown}"

    toml = shell.run("failures", "fit", "a.csv", "--end", "1y", "--name", "mine").ok().out
    assert 'name = "mine"' in toml
    assert "shape = 0.6" in toml or "shape = 0.7" in toml
    shell.run("failures", "fit", "a.csv", "--end", "1y", "-o", "m.toml").ok()
    shell.run("failures", "generate", "--failures", "m.toml,factor=2", *SHORT, "-o", "c.csv").ok()
    assert (shell.folder / "c.csv").stat().st_size > len(first)


def test_a_model_of_the_library_on_a_platform(shell):
    """A model has its own repair times, unless --repair is given; models add up; factors multiply."""
    models = ("--failures", "lanl-20", "--failures", "exponential,mtbf=10d,domain=cabinet:128")
    where = ("-p", "demo", "--horizon", "30d")
    one = shell.run("failures", "generate", *models[:2], *where, "-o", "1.csv").ok().out
    more = ("--repair", "1h", "--reliability-factor", "32")
    two = shell.run("failures", "generate", *models, *where, *more, "-o", "2.csv").ok().out

    assert int(two.split()[0].replace(",", "")) > 5 * int(one.split()[0].replace(",", ""))
    assert "cabinet 1: failure" in (shell.folder / "2.csv").read_text()


def test_the_failures_of_a_platform(shell):
    """Without ``--failures``, the platform's failures are used, with the given repairs and rates."""
    machine = '[[pools]]\nname = "p"\nnodes = 20\n'
    shell.write("m.toml", f'name = "m"\n{machine}[[failures]]\nmodel = "exponential,mtbf=5d"\nrepair = "1h"\n')
    shell.write("calm.toml", f'name = "calm"\n{machine}')
    rest = ("--horizon", "90d", "--seed", "3")
    shell.run("failures", "generate", "-p", "m.toml", *rest, "-o", "own.csv").ok()
    same = ("--failures", "exponential,mtbf=5d", "--repair", "1h")
    shell.run("failures", "generate", "-p", "m.toml", *same, *rest, "-o", "said.csv").ok()
    assert (shell.folder / "own.csv").read_bytes() == (shell.folder / "said.csv").read_bytes()
    done = shell.run("failures", "generate", "-p", "m.toml", "--reliability-factor", "9", *rest, "-o", "more.csv").ok()
    assert int(done.out.split()[0].replace(",", "")) > 1500
    for words in (("-p", "calm.toml"), ("--nodes", "4")):
        shell.run("failures", "generate", *words, *rest, "-o", "x.csv").failed(2, "[[failures]]", "--failures")


def test_nodes_without_outages_count(shell):
    """``show`` and ``fit`` take the number of all observed nodes."""
    shell.write("few.csv", "node,down,up\n1,10,20\n2,30,40\n")
    assert "2 of 2 nodes" in shell.run("failures", "show", "few.csv").ok().out
    shown = shell.run("failures", "show", "few.csv", "--nodes", "500", "--end", "9d").ok().out.splitlines()
    assert "nodes        500" in shown
    shell.run("failures", "show", "few.csv", "--nodes", "1").failed(2, "number of nodes does not match")


def test_a_generated_file_keeps_the_nodes_and_the_horizon(shell):
    """``show`` and ``fit`` read both from the file; options override them."""
    shell.run(*GENERATE[:3], "exponential,mtbf=5y", "--repair", "1h", *SHORT, "-o", "a.csv").ok()
    fitted = shell.run("failures", "fit", "a.csv").ok().out

    assert "nodes        40" in shell.run("failures", "show", "a.csv").ok().out.splitlines()
    assert fitted == shell.run("failures", "fit", "a.csv", "--nodes", "40", "--end", "1y").ok().out
    assert "nodes        60" in shell.run("failures", "show", "a.csv", "--nodes", "60").ok().out.splitlines()
    assert "there may be more" in shell.run("failures", "show", "a.csv", "--numbers", "0-30").ok().out
    shell.run("run", "-q", "--in-process", "--outages", "a.csv", "-o", "out").ok()
    shell.run("failures", "show", "a.csv", "--begin", "2y").failed(2, "--begin", "before the end of the log")


def test_comments_before_the_header_are_ignored(shell):
    """Line numbers in messages count them; a comment like a generated first line is a comment."""
    shell.write("a.csv", "# made by hand\n# nodes: many, end: 1.2.3 s\nnode,down,up\n1,10,20\n2,5,4\n")
    shell.run("failures", "show", "a.csv").failed(2, "a.csv, line 5", "ends no later than it begins")
    shell.write("b.csv", "# nodes: 3, end: 1.2.3 s\nnode,down,up\n1,10,20\n")
    assert "1 of 1 nodes" in shell.run("failures", "show", "b.csv").ok().out


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        ([*GENERATE, "--horizon", "1y", "-o", "x.csv"], ["exactly one of --platform and --nodes"]),
        ([*GENERATE, "-p", "demo", *SHORT, "-o", "x.csv"], ["exactly one of --platform and --nodes"]),
        ([*GENERATE, "--nodes", "4", "--horizon", "10min", "-o", "x.csv"], ["a repair takes longer than the horizon"]),
        ([*GENERATE, "--nodes", "4", "--horizon", "-1d", "-o", "x.csv"], ["a horizon is not above zero", "'-1d'"]),
        ([*GENERATE[:3], "lanl-21", *SHORT, "-o", "x.csv"], ["Did you mean 'lanl-2"]),
        ([*GENERATE[:3], "exponential,mtbf=0", *SHORT, "-o", "x.csv"], ["'mtbf' is not above zero"]),
        ([*GENERATE[:3], "exponential,mtbf=1h", *SHORT, "-o", "x.csv"], ["the repair time is missing", "--repair"]),
        (["failures", "show", "absent.csv"], ["absent.csv", "no such file"]),
        (["failures", "show", "bad.csv"], ["bad.csv, line 3", "ends no later than it begins"]),
        (["failures", "show", "good.csv", "--class", "x"], ["unknown class of nodes 'x'", "Did you mean", "all"][:1]),
        (["failures", "show", "good.csv", "--numbers", "4-1"], ["--numbers", "runs backwards"]),
        (["failures", "show", "good.csv", "--begin", "x"], ["--begin: a time cannot be read"]),
        (
            ["failures", "show", "good.csv", "--begin", "3h", "--end", "2h"],
            ["--begin: the beginning is not before the end", "2h"],
        ),
        (["failures", "show", "empty.csv"], ["empty.csv: is empty", "node,down,up,cause"]),
        (["failures", "fit", "good.csv", "--age", "-1d"], ["--age: a node's age is not above zero", "'-1d'"]),
        (["failures", "fit", "good.csv"], ["too few failures"]),
        (["failures", "fit", "good.csv", "--model", "weibul"], ["Did you mean 'weibull'"]),
        (["failures", "fit", "good.csv", "-o", "good.csv"], ["good.csv is also read by this command"]),
        (["failures", "fit", "good.csv", "--nodes", "1"], ["number of nodes does not match"]),
    ],
)
def test_wrong_input(shell, words, fragments):
    """Exit code 2 and one message with the error and its place; no file is written."""
    shell.write("bad.csv", "node,down,up\n1,2,3\n1,9,4\n")
    shell.write("good.csv", "node,down,up,cause,announced\n1,2,3,work,1\n2,2,3,work,1\n")
    shell.write("empty.csv", "")
    shell.run(*words).failed(2, *fragments)

    assert not (shell.folder / "x.csv").exists()


def test_a_file_that_cannot_be_written(shell):
    """Exit code 6 and the name of the file."""
    shell.run(*GENERATE, *SHORT, "-o", "absent/x.csv").failed(6, "absent/x.csv")


def test_the_real_log_is_shown(shell, traces_dir):
    """LANL's table of 23,739 failures is described; the picture has the nodes of one system."""
    log = str(next(traces_dir.glob("LA-UR-05-7318*")))
    assert "23,739 of 3,577 nodes" in shell.run("failures", "show", log).ok().out
    part = shell.run("failures", "show", log, "--class", "20", "--numbers", "0-255", "--begin", "2003-01-01").ok().out
    assert "256 nodes" in part
