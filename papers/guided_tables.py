"""What paper 001 prints, with the place of each table, and what its tables say of themselves."""

from typing import Final

from pipistrelle.papers.bench import Bench
from pipistrelle.papers.entry import Chart, FigureRow, Finding, Series, Tolerance, compared

#: half of the second digit behind the point
DIGIT: Final = Tolerance(absolute=0.0050001)

#: the classes of tables 4.2 to 4.10, by size
SIZES: Final = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 40960)
#: table 4.1: {processors: (jobs, % of all jobs)}, and the numbers of its text
REQUESTED: Final = {
    1: (1749, 2.54),
    2: (179, 0.26),
    4: (821, 1.19),
    8: (684, 0.99),
    16: (1558, 2.26),
    32: (647, 0.94),
    64: (2464, 3.57),
    128: (1242, 1.80),
    256: (10381, 15.06),
    512: (11284, 16.37),
    1024: (3686, 5.35),
    2048: (15239, 22.11),
    4096: (10540, 15.29),
    8192: (1882, 2.73),
    16384: (1981, 2.87),
    32768: (1268, 1.84),
    65536: (328, 0.48),
    131072: (171, 0.25),
}
REQUESTED_TOTAL: Final = (66104, 95.89)
ALL_JOBS: Final = 68936
#: table 4.2: jobs submitted, and (service, jobs an hour)
JOBS: Final = (8102, 1242, 10381, 11284, 3686, 15239, 10540, 1882, 1981, 1268, 499)
#: hours from April 1 to June 15, 2009, of which table 4.2 is
PEAK_HOURS: Final = 76 * 24
#: table 4.3: hours for the probabilities 0.60 to 0.95 by 0.05, and 0.99
REQUIRED: Final = """
212.98 271.69 355.79 483.69 695.31 1093.61 2031.22 5680.06 5.83E+04
371.39 473.77 620.42 843.45 1212.47 1907.03 3542.03 9904.86 1.02E+05
857.84 1094.31 1433.05 1948.20 2800.56 4404.85 8181.36 2.29E+04 2.35E+05
1.42E+04 1.81E+04 2.37E+04 3.22E+04 4.62E+04 7.27E+04 1.35E+05 3.78E+05 3.88E+06
2.42E+04 3.08E+04 4.04E+04 5.49E+04 7.89E+04 1.24E+05 2.30E+05 6.44E+05 6.61E+06
5.23E+04 6.67E+04 8.74E+04 1.19E+05 1.71E+05 2.69E+05 4.99E+05 1.39E+06 1.43E+07
9.53E+04 1.22E+05 1.59E+05 2.16E+05 3.11E+05 4.89E+05 9.09E+05 2.54E+06 2.61E+07
2.90E+05 3.70E+05 4.84E+05 6.58E+05 9.46E+05 1.49E+06 2.76E+06 7.73E+06 7.93E+07
3.26E+05 4.15E+05 5.44E+05 7.39E+05 1.06E+06 1.67E+06 3.10E+06 8.68E+06 8.91E+07
3.25E+05 4.15E+05 5.44E+05 7.39E+05 1.06E+06 1.67E+06 3.10E+06 8.68E+06 8.91E+07
1.72E+05 2.20E+05 2.88E+05 3.92E+05 5.63E+05 8.85E+05 1.64E+06 4.60E+06 4.72E+07
"""
#: table 4.4: node-hours and rank
COSTS: Final = (
    64.448,
    112.384,
    259.584,
    4285.44,
    7310.336,
    15824.896,
    28839.936,
    87662.592,
    98516.992,
    98467.84,
    52183.04,
)
RANKS: Final = (11, 10, 9, 8, 7, 6, 5, 3, 1, 2, 4)
#: table 4.5: nodes at no blocking; types I and IV, and II and III, at 0.1 and 0.2
MOST: Final = (132, 31, 62, 4154, 3688, 5454, 4993, 11305, 10865, 14956, 12902)
ONE_FOUR: Final = {
    0.1: (119, 28, 56, 3739, 3319, 4909, 4494, 10174, 9778, 13460, 11612),
    0.2: (105, 25, 50, 3323, 2950, 4363, 3994, 9044, 8691, 11965, 10322),
}
TWO_THREE: Final = {
    0.1: (119, 41, 59, 3745, 3735, 5278, 5039, 10674, 10908, 14547, 13108),
    0.2: (105, 56, 55, 3008, 3737, 4969, 5087, 9547, 10861, 13819, 13396),
}
#: tables 4.6 and 4.7, types I and IV: {blocking: (nodes, mean time to failure in h) of each partition}; that of 512
#: nodes at 0.1 stands in the column of types II and III
PARTITIONS: Final = {
    0.0: ((16384, 12102.93), (11305, 9826.90), (4993, 8907.62), (5454, 8168.40), (2824, 7669.14)),
    0.1: ((16384, 12102.93), (10174, 9884.47), (4494, 9103.56), (4909, 8422.93), (3319, 7917.12), (1680, 7545.23)),
    0.2: (
        *((16384, 12102.93), (9044, 9941.54), (4096, 9272.03), (4363, 8679.65), (2950, 8163.62), (3323, 7860.93)),
        *((256, 7277.21), (128, 7272.14), (105, 7261.69)),
    ),
}
EXTRA: Final = (311, 7258.35)
#: what a node lives on average, h: section 4.2
MACHINE: Final = 10250.67
#: table 4.8: {size: (T, new mean time to failure, chance to last before, and after)}
LASTS: Final = {
    16384: (12102.93, 0.0032, 0.0060),
    32768: (10250.67, 0.0032, 0.0032),
    8192: (9826.90, 0.0050, 0.0043),
    40960: (10250.67, 0.0251, 0.0251),
    4096: (8907.62, 0.0878, 0.0683),
    2048: (8168.40, 0.2022, 0.1536),
    1024: (7669.14, 0.3942, 0.3197),
    512: (7669.14, 0.5270, 0.4562),
    256: (7669.14, 0.9140, 0.8956),
    128: (7669.14, 0.9512, 0.9405),
    64: (7669.14, 0.9666, 0.9593),
}
#: table 4.9: {size: (mean time to failure, ratio) at 0, at 0.1 types I and IV, II and III, at 0.2 likewise}
RATIOS: Final = {
    16384: ((12102.93, 1.18), (12102.93, 1.18), (12102.93, 1.18), (12102.93, 1.18), (12102.93, 1.18)),
    32768: ((10250.67, 1.00), (10250.67, 1.00), (10250.67, 1.00), (10250.67, 1.00), (10250.67, 1.00)),
    8192: ((9826.90, 0.96), (9884.47, 0.96), (9858.49, 0.96), (9941.54, 0.97), (9916.62, 0.97)),
    40960: ((10250.67, 1.00), (10250.67, 1.00), (10250.67, 1.00), (10250.67, 1.00), (10250.67, 1.00)),
    4096: ((8907.62, 0.87), (9103.56, 0.89), (8992.86, 0.88), (9272.03, 0.90), (9141.48, 0.89)),
    2048: ((8168.40, 0.80), (8422.93, 0.82), (8254.23, 0.81), (8679.65, 0.85), (8423.73, 0.82)),
    1024: ((7669.14, 0.75), (7917.12, 0.77), (7717.33, 0.75), (8163.62, 0.80), (7904.80, 0.77)),
    512: ((7669.14, 0.75), (7545.23, 0.74), (7717.33, 0.75), (7860.93, 0.77), (7445.44, 0.73)),
    256: ((7669.14, 0.75), (7545.23, 0.74), (7717.33, 0.75), (7277.21, 0.71), (7445.44, 0.73)),
    128: ((7669.14, 0.75), (7545.23, 0.74), (7717.33, 0.75), (7272.14, 0.71), (7445.44, 0.73)),
    64: ((7669.14, 0.75), (7545.23, 0.74), (7717.33, 0.75), (7261.69, 0.71), (7445.44, 0.73)),
}
RATIO_COLUMNS: Final = ("0", "0.1, types I and IV", "0.1, II and III", "0.2, types I and IV", "0.2, II and III")
#: table 4.10: {size: (change of the interval, of the cost in node-min/h)}, and the net of the text
CHECKPOINTS: Final = {
    16384: (39.21, -1806.09),
    8192: (-9.46, 242.29),
    4096: (-30.70, 413.54),
    2048: (-48.60, 342.13),
    1024: (-61.14, 222.30),
    512: (-61.14, 111.15),
    256: (-61.14, 55.58),
    128: (-61.14, 27.79),
    64: (-61.14, 13.89),
}
SAVED: Final = 377.42
#: a dump takes so long, min: section 4.3
DUMP: Final = 10.0
#: table 5.1: (upper bound of the range in h, nodes, the numbers of the first and last node)
RANGES: Final = (
    (14000, 1470, 40960, 39490),
    (13500, 2520, 39489, 36970),
    (13000, 1995, 36969, 34975),
    (12500, 2940, 34974, 32035),
    (12000, 1785, 32034, 30250),
    (11500, 2625, 30249, 27625),
    (11000, 3255, 27624, 24370),
    (10500, 4200, 24369, 20170),
    (10000, 4305, 20169, 15865),
    (9500, 4620, 15864, 11245),
    (9000, 3237, 11244, 8008),
    (8500, 3536, 8007, 4472),
    (8000, 3640, 4471, 832),
    (7500, 832, 831, 1),
)
#: table 5.2: (mean time to failure in h, node failures before and after, failed jobs before and after, impact in %)
SIMULATED: Final = (
    (12174.33, 927, 783, 149, 126, 15.53),
    (9841.57, 387, 305, 150, 119, 21.19),
    (9101.44, 148, 161, 62, 68, -8.78),
    (8123.67, 162, 172, 150, 160, -6.17),
    (7602.69, 200, 403, 2103, 4237, -100.0),
)
SIMULATED_TOTAL: Final = (10255.04, 1824, 1824, 2615, 4709)
#: tables A.1 and A.2: what each class is given, by rank, and what it had; the p values of the text
ASSIGNED: Final = (12102.93, 10250.67, 9826.90, 10250.67, 8907.62, 8168.40, *(5 * (7669.14,)))
ASSIGNED_SIMULATED: Final = (12174.33, 10255.04, 9841.57, 10255.04, 9101.44, 8123.67, *(5 * (7602.69,)))
P_VALUES: Final = (0.003775, 0.004358)
#: table A.3: {size: cost by simulation, by analysis}, node-min, and the net of the text
COST_CHANGES: Final = {
    16384: (1862.38, 1806.09),
    8192: (-236.06, -242.29),
    4096: (-349.37, -413.54),
    2048: (-351.52, -342.13),
    1024: (-229.81, -222.31),
    512: (-114.91, -111.15),
    256: (-57.45, -55.58),
    128: (-28.73, -27.79),
    64: (-14.36, -13.89),
}
NETS: Final = (481.18, 377.42)
#: figure B.1: job, submitted (s), service (s), processors; figure B.2: the same as days:hours:minutes:seconds, nodes
LOG_LINES: Final = """
37 50869 5484 8192 00:14:07:49 00:01:31:24 2048
38 50888 17842 8192 00:14:08:08 00:04:57:22 2048
39 51097 10999 2048 00:14:11:37 00:03:03:19 512
40 51097 11037 2048 00:14:11:37 00:03:03:57 512
47 51203 9509 8192 00:14:13:23 00:02:38:29 2048
51 60729 273 256 00:16:52:09 00:00:04:33 64
52 62342 36363 2048 00:17:19:02 00:10:06:03 512
53 62770 2907 512 00:17:26:10 00:00:48:27 128
55 63285 11067 2048 00:17:34:45 00:03:04:27 512
72 65734 154 1024 00:18:15:34 00:00:02:34 256
73 65755 2989 1024 00:18:15:55 00:00:49:49 256
74 65784 3659 256 00:18:16:24 00:01:00:59 64
75 65968 29663 8192 00:18:19:28 00:08:14:23 2048
76 65969 27632 8192 00:18:19:29 00:07:40:32 2048
78 66365 1071 256 00:18:26:05 00:00:17:51 64
79 66695 138 256 00:18:31:35 00:00:02:18 64
81 68223 7268 2048 00:18:57:03 00:02:01:08 512
84 68290 4564 2048 00:18:58:10 00:01:16:04 512
"""


def table_4_1(bench: Bench) -> Finding:
    """Return the percentages and sums of table 4.1."""
    rows = [
        compared(f"{size:,} processors", share, 100 * count / ALL_JOBS, DIGIT, "%")
        for size, (count, share) in REQUESTED.items()
    ]
    total = sum(count for count, _ in REQUESTED.values())
    said, share = REQUESTED_TOTAL
    rows += [
        compared("jobs of these sizes", said, total, Tolerance()),
        compared("all these sizes", share, 100 * total / ALL_JOBS, DIGIT, "%"),
    ]
    sizes = list(REQUESTED)
    bars = Series("jobs of table 4.1", list(range(len(sizes))), [one for one, _ in REQUESTED.values()], paper=True)
    chart = Chart(
        "jobs by requested processors", "processors", "jobs", [bars], kind="bars", names=[str(n) for n in sizes]
    )
    return Finding(rows, [chart])


def table_4_9(bench: Bench) -> Finding:
    """Return the ratios of table 4.9."""
    rows = []
    for size, cells in RATIOS.items():
        for column, (mttf, ratio) in zip(RATIO_COLUMNS, cells, strict=True):
            rows.append(compared(f"{size:,} nodes at {column}", ratio, mttf / MACHINE, DIGIT))
    return Finding(rows)


def figure_b_2(bench: Bench) -> Finding:
    """Return how many lines of figure B.2 follow from figure B.1."""
    right = 0
    lines = LOG_LINES.strip().splitlines()
    for line in lines:
        _, submitted, service, processors, *told = line.split()
        right += [_clock(int(submitted)), _clock(int(service)), str(int(processors) // 4)] == told
    return Finding([compared("lines that follow from figure B.1", len(lines), right, Tolerance())])


def _clock(seconds: int) -> str:
    return f"{seconds // 86400:02}:{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def ranges_chart() -> Chart:
    """Return table 5.1 as a histogram."""
    names = [f"{upper - 500:,}" for upper, *_ in RANGES]
    bars = Series("nodes", list(range(len(names))), [count for _, count, *_ in RANGES], paper=True)
    return Chart(
        "nodes by mean time to failure", "from so many hours, 500 h wide", "nodes", [bars], kind="bars", names=names
    )


def figure_5_1(bench: Bench) -> Finding:
    """Return the ends of figure 5.1."""
    counts = [count for _, count, *_ in RANGES]
    rows = [
        FigureRow("the largest range", None, max(counts), "nodes"),
        FigureRow("the smallest", None, min(counts), "nodes"),
    ]
    return Finding(rows, [ranges_chart()])
