/* SPDX-License-Identifier: MIT */
/* The complete program on records that pass the check, perhaps repeated: its output is sorted, and has the same bytes
 * whether the records fit into memory or not, with any number of threads.
 *
 *   order | times | records */
#include "bam/bam_header.h"
#include "bam/tag_check.h"
#include "fuzz.h"
#include "program.h"

enum { RECORDS = 16, SMALLEST_ARENA = 256 << 10, MOST = 5 * SMALLEST_ARENA / 2 };

/* Returns whether all tags can be read. Call it after the record is normalised, as when it is read. */
static bool has_readable_tags(const struct bam_record *r)
{
    return tag_check_bam(bam_record_aux(r), bam_record_end(r));
}

/* A raw BAM file of the records of the input, repeated as it states, as far as there is room. */
static uint8_t *make_file(struct feed *f, size_t *size, bool *readable)
{
    static sam_hdr_t *sam;
    uint8_t *records = must_alloc(RECORDS * FUZZ_RECORD_MAX), *header;
    size_t times = feed_byte(f), all = 0, one, header_size;
    if (!sam)
        sam = fuzz_header();
    *readable = true;
    for (int i = 0; i < RECORDS && (one = fuzz_record(f, records + all)) > 0; i++, all += one)
        *readable &= has_readable_tags((const struct bam_record *)(records + all));
    times = times < 224 ? 1 + times / 32 : MOST; /* usually a few records, for speed; or enough for two full arenas */
    if (times * all > MOST)
        times = MOST / all;
    MUST(bam_header_bytes(sam, &header, &header_size) == 0);
    uint8_t *file = must_alloc(header_size + times * all);
    memcpy(file, header, header_size);
    *size = header_size;
    for (; times > 0; times--, *size += all)
        memcpy(file + *size, records, all);
    free(header);
    free(records);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const orders[][2] = {
        {"-u", "-u"}, {"-n", "-u"}, {"-N", "-u"}, {"--picard", "-u"}, {"-tXT", "-u"}, {"-tRG", "-n"},
        {"-tXT", "--picard"}, {"--template-coordinate", "-u"}, {"-M", "-K9"}, {"-M", "-K25"},
    };
    enum { N_ORDERS = sizeof orders / sizeof *orders, FIRST_MINHASH = 8 };
    struct feed f = {data, size};
    bool readable;
    size_t by = feed_byte(&f) % N_ORDERS, file_size;
    const char *const *order = orders[by];
    const char *const one[] = {"-u", "--no-PG", "-@1", "-m8M", order[0], order[1], NULL};
    const char *const two[] = {"-u", "--no-PG", "-@2", "-m8M", order[0], order[1], NULL};
    const char *const check[] = {"--check", order[0], order[1], NULL};
    uint8_t *file = make_file(&f, &file_size, &readable);
    unsetenv("SAMTOOLS_OMP_ARENA");
    struct made whole = program_run(one, file, file_size);
    setenv("SAMTOOLS_OMP_ARENA", "262144", 1);
    struct made spilled = program_run(two, file, file_size);
    unsetenv("SAMTOOLS_OMP_ARENA");
    MUST(spilled.status == whole.status);        /* otherwise standard output may have another part of it */
    MUST(whole.status != EXIT_SUCCESS
         || (spilled.size == whole.size && memcmp(spilled.data, whole.data, whole.size) == 0));
    MUST(whole.status == EXIT_SUCCESS || by == 7 || !readable);   /* by 7, a tag that the order needs may be missing */
    MUST(whole.status != EXIT_SUCCESS || (readable && fuzz_can_be_viewed(whole.data, whole.size)));
    if (whole.status == EXIT_SUCCESS && by < FIRST_MINHASH) {
        struct made checked = program_run(check, whole.data, whole.size);
        MUST(checked.status == EXIT_SUCCESS);
        free(checked.data);
    }
    free(whole.data);
    free(spilled.data);
    free(file);
    return 0;
}
