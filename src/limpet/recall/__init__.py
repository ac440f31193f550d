"""One question over everything that is kept: words, candidates, ranking, snippets, embeddings."""
