"""From rows to weights: what is needed to fit a model and not to play it.

- `config`, `requests`: how to train, what, and what came of it;
- `rows`, `tasks`, `corpus`: a dataset's rows as the examples of a model, as numbers of features, sorted and merged;
- `objective`, `optimizers`: what is minimised, and by which steps;
- `loop`: iterations with scores on the validation rows, checkpoints, and an end when they stop improving;
- `trainers`: every algorithm by its name; each kind of model has a module (`maxent`, `crf`, `boosting`,
  `mlp_train`, `logistic`, `blend`);
- `sizing`: the amounts that an agent bets in no-limit games;
- `prior`, `open_priors`: models that start from what others play;
- `remarks`: what whoever trains should be told about the results;
- `growing`, `interrupts`: bundles that survive a kill, and Ctrl-C at a moment when nothing is half done.

`pipeline.training.run` is the face: it reads a dataset, trains a model per street and writes the bundle.
"""
