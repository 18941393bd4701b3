-- SPDX-License-Identifier: MIT
-- For Lmod. Load it after the module of upstream samtools, which runs all other commands.
help([[samtools-omp @VERSION@: samtools sort, collate, merge, fixmate, markdup, sormadup, stats, flagstat, idxstats and coverage on every core.
Load it after the module of the samtools that runs all other commands.]])
whatis("Version: @VERSION@")
whatis("Description: faster samtools sort, collate, merge, fixmate, markdup, stats, flagstat, idxstats and coverage, and sormadup")
prepend_path("PATH", [[@BIN@]])
prepend_path("PATH", [[@LIBEXEC@]])
prepend_path("MANPATH", [[@MAN@]])
-- The system's manuals, too.
append_path("MANPATH", "")
