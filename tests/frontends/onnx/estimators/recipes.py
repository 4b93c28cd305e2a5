"""Estimators of scikit-learn as they are usually made, what they learn from, and how they are converted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler, Normalizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

Array = np.ndarray[Any, Any]
_SEED: Final = 0


def _forest(kind: Any) -> Any:
    return kind(n_estimators=5, max_depth=4, random_state=_SEED)


CLASSIFIERS: Final[Mapping[str, Callable[[], Any]]] = {
    "AdaBoostClassifier": lambda: AdaBoostClassifier(n_estimators=3, random_state=_SEED),
    "DecisionTreeClassifier": lambda: DecisionTreeClassifier(max_depth=4, random_state=_SEED),
    "GaussianNB": GaussianNB,
    "GradientBoostingClassifier": lambda: _forest(GradientBoostingClassifier),
    "KNeighborsClassifier": lambda: KNeighborsClassifier(3),
    "LinearSVC": lambda: LinearSVC(random_state=_SEED),
    "LogisticRegression": LogisticRegression,
    "MLPClassifier": lambda: MLPClassifier((5,), max_iter=50, random_state=_SEED),
    "RandomForestClassifier": lambda: _forest(RandomForestClassifier),
    "RidgeClassifier": RidgeClassifier,
    "SGDClassifier": lambda: SGDClassifier(random_state=_SEED),
    "SVC": SVC,
    "SVC-poly": lambda: SVC(kernel="poly"),
    "SVC-probability": lambda: SVC(probability=True, random_state=_SEED),
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "pipeline-of-four": lambda: make_pipeline(
        SimpleImputer(), StandardScaler(), PCA(3), _forest(RandomForestClassifier)
    ),
}
"""Of three classes, and of two of these under the same name with `-of-two`."""

REGRESSORS: Final[Mapping[str, Callable[[], Any]]] = {
    "DecisionTreeRegressor": lambda: DecisionTreeRegressor(max_depth=4, random_state=_SEED),
    "GradientBoostingRegressor": lambda: _forest(GradientBoostingRegressor),
    "KNeighborsRegressor": lambda: KNeighborsRegressor(3),
    "Lasso": Lasso,
    "LinearRegression": LinearRegression,
    "RandomForestRegressor": lambda: _forest(RandomForestRegressor),
    "Ridge": Ridge,
    "SVR": lambda: SVR(C=100),
}

TRANSFORMERS: Final[Mapping[str, Callable[[], Any]]] = {
    "Binarizer": lambda: Binarizer(threshold=1.5),
    "KMeans": lambda: KMeans(3, random_state=_SEED),
    "MinMaxScaler": MinMaxScaler,
    "Normalizer": Normalizer,
    "OneHotEncoder": OneHotEncoder,
    "OrdinalEncoder": OrdinalEncoder,
    "PCA": lambda: PCA(2),
    "SimpleImputer": SimpleImputer,
    "StandardScaler": StandardScaler,
}


def flowers() -> tuple[Array, Array]:
    """Every second flower, with noise, so that classes overlap and no row lies on a threshold."""
    x, y = load_iris(return_X_y=True)
    noisy = x + np.random.default_rng(_SEED).normal(0, 0.3, x.shape)
    return np.abs(noisy[::2]).astype(np.float32), y[::2]


def patients() -> tuple[Array, Array]:
    x, y = load_diabetes(return_X_y=True)
    return x[::5].astype(np.float32), y[::5]


def fitted() -> Mapping[str, tuple[Any, Array]]:
    """Every estimator by name, with rows to predict of."""
    x, y = flowers()
    found: dict[str, tuple[Any, Array]] = {}
    for name, make in CLASSIFIERS.items():
        found[name] = make().fit(x, y), x[::7]
        found[f"{name}-of-two"] = make().fit(x[y > 0], y[y > 0]), x[y > 0][::5]
    features, values = patients()
    found |= {name: (make().fit(features, values), features[::9]) for name, make in REGRESSORS.items()}
    for name, make in TRANSFORMERS.items():
        taken = np.floor(x) if name in ("OneHotEncoder", "OrdinalEncoder") else x.copy()
        if name == "SimpleImputer":
            taken[::4, 1] = np.nan
        found[name] = make().fit(taken), taken[::7]
    return found
