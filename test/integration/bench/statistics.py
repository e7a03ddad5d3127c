"""Computes by scipy and statsmodels what api/catalog/bench/statistics computes, for the cases on standard input."""
import json
import sys

import numpy as np
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint


def wilson(case):
    low, high = proportion_confint(case["passed"], case["n"], alpha=0.05, method="wilson")
    return [float(low), float(high)]


def clustered(rows):
    """A regression of every run's difference on a constant, with errors clustered by task."""
    values = np.array([value for row in rows for value in row])
    groups = np.array([task for task, row in enumerate(rows) for _ in row])
    fit = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True, "df_correction": True}, use_t=True
    )
    # statsmodels corrects by G/(G-1) * (N-1)/(N-K), and K is 1 here.
    low, high = fit.conf_int(0.05)[0]
    return {
        "difference": float(fit.params[0]),
        "standard_error": float(fit.bse[0]),
        "interval": [float(low), float(high)],
        "p": float(fit.pvalues[0]),
    }


def paired(differences):
    values = np.array(differences)
    result = stats.ttest_1samp(values, 0)
    low, high = result.confidence_interval(0.95)
    return {"p": float(result.pvalue), "interval": [float(low), float(high)]}


cases = json.load(sys.stdin)
json.dump(
    {
        "wilson": [wilson(case) for case in cases["wilson"]],
        "critical": [float(stats.t.ppf(1 - case["p"] / 2, case["freedom"])) for case in cases["t"]],
        "two_sided": [float(2 * stats.t.sf(abs(case["t"]), case["freedom"])) for case in cases["t"]],
        "clustered": [clustered(rows) for rows in cases["clustered"]],
        "paired": [paired(differences) for differences in cases["paired"]],
        "adjusted": [
            [float(p) for p in multipletests(values, method="fdr_bh")[1]] for values in cases["adjusted"]
        ],
        "percentiles": [
            [float(p) for p in np.percentile(values, [50, 95])] for values in cases["percentiles"]
        ],
    },
    sys.stdout,
)
