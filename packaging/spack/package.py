# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class SamtoolsOmp(MakefilePackage):
    """A faster samtools sort, collate, merge, fixmate, markdup, stats, flagstat, idxstats and coverage, with the
    records of samtools 1.24. It adds sormadup, which fixes mates, sorts and marks duplicates in one process."""

    homepage = "https://samtools-omp.invalid"
    url = "https://samtools-omp.invalid/samtools-omp-0.2.0.tar.gz"

    maintainers("samtools-omp-maintainer")

    license("MIT")

    version("0.2.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("htslib@1.13:")
    depends_on("jansson")
    depends_on("libdeflate")
    depends_on("lz4")
    depends_on("xxhash")
    depends_on("zlib-api")
    depends_on("samtools", type="run")
    depends_on("llvm-openmp", when="%apple-clang")

    @property
    def common_settings(self):
        settings = [f"CC={spack_cc}", f"prefix={self.prefix}", f"OPENMP_CFLAGS={self.compiler.openmp_flag}"]
        if self.spec.satisfies("%apple-clang"):
            settings.append("EXTRA_LIBS=-lomp")
        return settings

    @property
    def build_targets(self):
        return self.common_settings

    @property
    def install_targets(self):
        return self.common_settings + ["install"]

    def setup_run_environment(self, env):
        env.prepend_path("PATH", join_path(self.prefix.libexec, "samtools-omp"))
