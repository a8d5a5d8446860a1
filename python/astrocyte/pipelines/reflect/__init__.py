"""From recalled memories to an answer: by choosing sentences, or by a language model."""
