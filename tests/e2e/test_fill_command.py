"""``pipistrelle workload fill`` from the command line."""

import json

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,4,T4\nn2,64000,262144,4,T4\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np1,4000,8192,1,300,T4\np2,8000,8192,2,1000,\n"
FILES = ("--platform", "nodes.csv", "--workload", "pods.csv")


def test_fill_prints_figures_at_the_points_reached(shell):
    """JSON has lists of [requested, value]; equal seeds print equal bytes, and unknown names are refused."""
    shell.write("nodes.csv", NODES)
    shell.write("pods.csv", PODS)
    command = ("workload", "fill", *FILES, "--until", "85%", "--seed", "3", "--json")

    first = shell.run(*command)
    found = json.loads(first.out)
    assert [point for point, _ in found["allocated"]] == [50, 80]
    assert [point for point, _ in found["fragmented"]] == [50, 80]
    assert shell.run(*command).out == first.out
    shell.run("workload", "fill", *FILES, "--placement", "fdg").failed(2, "Did you mean 'fgd'?")
    shell.run("workload", "fill", *FILES, "--until", "nan").failed(2, "--until", "not a percentage")
