"""From a rubric and a text to a reply and its scores: prompts, parsing, and the judges that answer."""
