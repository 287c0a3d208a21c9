"""Rows of a dataset to bundles: everything that fitting a model needs and playing it does not.

In: a `Request` (a dataset, agents, algorithms, settings). Out: a bundle per algorithm, with a model per street. To read
in this order:

- `run`: the face, which reads a dataset, trains a model per street and writes the bundle as it grows (`growing`);
- `config`, `requests`, `summary`: settings, requests, results and what is printed of these;
- `streets`: a street opened for training, its rows whole in memory or in parts;
- `rows`, `inner`, `tasks`, `corpus`: rows as examples, those that choices are made on, rows as numbers of features,
  sorted and merged;
- `objective`, `stochastic`, `optimizers`, `loop`: the penalised likelihood and how it is minimised;
- `trainers`: every algorithm by its name; those of some size have modules: `maxent` (with `prior`, where it starts from
  others' play), `crf`, `boosting`, `classes`, `blend` (whose exponents `exponents` fits);
- `parts`, `sharded`: max-ent on more rows than fit into memory, here or on a cluster;
- `sizing`: the amounts that an agent bets in no-limit games;
- `sklearn`: the max-ent optimisers as a scikit-learn classifier.
"""
