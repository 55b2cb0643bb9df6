"""What the logistic models share: separation, cluster-robust covariance, coefficients as estimates."""

import numpy as np
from scipy import optimize, sparse, stats

from core.stats.common import Bools, Estimate, Floats, Interval, Ints, Undefined

FEW_CLUSTERS = 10
FEW_CLUSTERS_NOTE = "fewer than 10 clusters: the interval is rough"


def separated(design: Floats, wins: Bools, losses: Bools) -> bool:
    """Whether a logistic model has no finite maximum-likelihood fit.

    True when some direction never predicts a seen outcome against its sign and predicts at least one with it (Albert &
    Anderson 1984), found by linear programming.

    Args:
        design: Distinct covariate rows, shape (rows, columns).
        wins: Whether a row holds any win, shape (rows,).
        losses: Whether a row holds any loss.
    """
    signed = np.vstack([design[wins], -design[losses]])
    best = optimize.linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=(-1, 1))
    return best.fun is not None and bool(best.fun < -1e-9)


def cluster_covariance(
    bread: Floats, design: Floats | sparse.csr_array, residuals: Floats, clusters: Ints
) -> tuple[Floats, int]:
    """Cluster-robust covariance with the CR1 correction G / (G - 1) * (n - 1) / (n - k), statsmodels' default.

    Args:
        bread: Inverse information matrix, shape (columns, columns).
        design: Covariates, shape (rows, columns).
        residuals: Outcome minus fitted value, shape (rows,).
        clusters: Cluster of each row, shape (rows,), any integers.

    Returns:
        The covariance and the number of clusters.
    """
    _, index = np.unique(clusters, return_inverse=True)
    groups, (n, k) = int(index.max()) + 1, design.shape
    sums = sparse.csr_array((residuals, (index, np.arange(n))), shape=(groups, n)) @ design
    meat = sparse.csr_array(sums.T @ sums).toarray()
    correction = groups / max(groups - 1, 1) * (n - 1) / max(n - k, 1)
    return bread @ meat @ bread * correction, groups


def coefficient(value: float, error: float, n: int, *, clusters: int | None = None, left_out: int = 0) -> Estimate:
    """A coefficient on the log-odds scale with its 95% normal interval; few clusters are noted, one gives none."""
    method = "Wald" if clusters is None else "Wald, cluster-robust by item"
    if clusters == 1:
        return Estimate(float(value), n, left_out, interval=Interval(None, None, method, reason=Undefined.SINGLE_ITEM))
    half = stats.norm.ppf(0.975) * error
    interval = Interval(float(value - half), float(value + half), method)
    notes = (FEW_CLUSTERS_NOTE,) if clusters is not None and clusters < FEW_CLUSTERS else ()
    return Estimate(float(value), n, left_out, interval=interval, notes=notes)
