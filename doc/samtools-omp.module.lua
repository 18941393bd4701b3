-- SPDX-License-Identifier: MIT
-- For Lmod. Load it after the module of the other samtools, which gets all commands but sort, collate, merge, fixmate and
-- markdup.
help("samtools-omp @VERSION@: sort, collate, merge, fixmate and markdup on every core. Load it after the samtools that runs the rest.")
whatis("Version: @VERSION@")
whatis("Description: faster samtools sort, collate, merge, fixmate and markdup under the name samtools")
prepend_path("PATH", [[@BIN@]])
prepend_path("PATH", [[@LIBEXEC@]])
prepend_path("MANPATH", [[@MAN@]])
-- The system's manuals, too.
append_path("MANPATH", "")
