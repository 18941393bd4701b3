/* SPDX-License-Identifier: MIT */
/* Files that nothing but records should take the place of: a mistyped option shall not cost a user their data. */
#ifndef HELD_DATA_H
#define HELD_DATA_H

/* What the regular file of that name begins as, as messages say it ("BGZF or gzip"): reads, references, their indexes,
 * or anything compressed. NULL: none of these, or no file that can be read. */
const char *held_data_kind(const char *path);

#endif
