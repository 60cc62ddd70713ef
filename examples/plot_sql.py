"""
The model as SQL, in DuckDB
===========================

A fitted tree can be written as a nested CASE over weighted sums of columns, so any database can assign rows
to the clusters.
"""

import duckdb
import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from ravine import MinimumDensity

iris = load_iris(as_frame=True).data.rename(columns=lambda name: name.replace(" (cm)", "").replace(" ", "_"))
model = MinimumDensity(n_clusters=2).fit(iris)
query = model.tree_.export_sql("iris", "duckdb")
print(query)

# %%
answer = duckdb.connect().register("iris", iris).sql(query).df()
print("same clusters as in Python:", bool((answer["cluster"] == model.labels_).all()))

figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
ax.scatter(answer["petal_length"], answer["petal_width"], c=answer["cluster"], s=10, cmap="coolwarm")
ax.set(xlabel="petal length", ylabel="petal width")
