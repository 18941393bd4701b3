/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "codec/frame_list.h"

enum { N_BLOCKS = 40 };

/* Blocks of all sizes, stored (so that their bytes are the given ones) and deflated, one of them empty. begins: room
 * for N_BLOCKS + 1 places. */
static struct unit_bytes make_file(uint64_t seed, size_t *begins)
{
    struct unit_bytes file = {NULL, 0, 0};
    struct bgzf_codec *codecs[2] = {bgzf_codec_new(0), bgzf_codec_new(1)};
    uint8_t *data = malloc(BGZF_FILL), *block = malloc(BGZF_MAX_BLOCK);
    MUST(codecs[0] && codecs[1] && data && block);
    for (int i = 0; i < N_BLOCKS; i++) {
        uint32_t n = 1 + unit_below(&seed, i % 8 ? 400 : BGZF_FILL - 1);
        unit_fill(&seed, data, n);
        begins[i] = file.n;
        if (i == N_BLOCKS / 2)
            unit_append(&file, bgzf_block_eof, BGZF_EOF_SIZE);
        else
            unit_append(&file, block, bgzf_block_deflate(codecs[i % 2], data, n, block));
    }
    begins[N_BLOCKS] = file.n;
    for (int i = 0; i < 2; i++)
        bgzf_codec_free(codecs[i]);
    free(data);
    free(block);
    return file;
}

/* The list of file[begin..end), from an allocation of that size, so that a sanitizer reports a read past it. */
static void list_piece(struct frame_list *list, const struct unit_bytes *file, size_t begin, size_t end)
{
    uint8_t *piece = malloc(end - begin + !(end - begin));
    MUST(piece);
    if (end > begin)
        memcpy(piece, file->data + begin, end - begin);
    frame_list_make(list, piece, end - begin, begin);
    free(piece);
}

/* Each frame of the list is the one that bgzf_block_frame() finds there. */
static void check_frames(const struct frame_list *list, const struct unit_bytes *file)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const struct listed_frame *f = &list->frames[i];
        size_t at = (size_t)list->begin + f->at;
        struct bgzf_frame frame;
        assert_int_equal(bgzf_block_frame(file->data + at, file->n - at, &frame), BGZF_OK);
        assert_memory_equal(&frame, &f->frame, sizeof frame);
    }
}

/* The list finds all blocks that are complete in the piece up to `last`, and no others. The search is that of a
 * reader. */
static void check_finds(struct frame_list *list, const size_t *begins, size_t begin, size_t end, int last)
{
    for (int i = 0; i < N_BLOCKS; i++) {
        const struct bgzf_frame *found = frame_list_find(list, begins[i]);
        bool whole = begins[i] >= begin && begins[i + 1] <= end && i < last;
        assert_int_equal(found != NULL, whole);
        if (found)
            assert_int_equal(found->size, begins[i + 1] - begins[i]);
        assert_ptr_equal(frame_list_find(list, begins[i]), found);
        assert_null(frame_list_find(list, begins[i] + 1));
    }
}

static void test_pieces_that_begin_and_end_anywhere_miss_a_block(void **state)
{
    (void)state;
    size_t begins[N_BLOCKS + 1];
    struct unit_bytes file = make_file(1, begins);
    struct frame_list list;
    uint64_t seed = 2;
    for (int i = 0; i < 3000; i++) {
        bool exact = i % 3 == 0;
        size_t begin = exact ? begins[unit_below(&seed, N_BLOCKS)] : unit_below(&seed, (uint32_t)file.n);
        size_t end = begin + unit_below(&seed, (uint32_t)(file.n - begin) + 1);
        list_piece(&list, &file, begin, i % 5 ? end : file.n);
        check_frames(&list, &file);
        check_finds(&list, begins, begin, i % 5 ? end : file.n, N_BLOCKS);
    }
    unit_free(&file);
}

static void test_damaged_block_and_those_behind_it_are_listed(void **state)
{
    (void)state;
    size_t begins[N_BLOCKS + 1];
    struct unit_bytes file = make_file(3, begins);
    struct frame_list list;
    static const size_t in_header[] = {0, 1, 2, 3, 12, 13, 14};
    for (size_t i = 0; i < N_OF(in_header); i++) {
        int hurt = 5 + 3 * (int)i;
        uint8_t *byte = file.data + begins[hurt] + in_header[i], flip = in_header[i] == 3 ? 4 : 0x40;
        *byte ^= flip;
        list_piece(&list, &file, 0, file.n);
        check_frames(&list, &file);
        check_finds(&list, begins, 0, file.n, hurt);
        *byte ^= flip;
    }
    file.data[begins[8] - 1] = 0xff;             /* an inflated size larger than a block */
    list_piece(&list, &file, 0, file.n);
    check_finds(&list, begins, 0, file.n, 7);
    unit_free(&file);
}

/* A stored block contains blocks. A piece that begins there lists those: then only real blocks of the file may be
 * found. */
static void test_blocks_inside_a_block_are_taken_for_blocks(void **state)
{
    (void)state;
    struct unit_bytes inner = {NULL, 0, 0}, file = {NULL, 0, 0};
    struct bgzf_codec *codec = bgzf_codec_new(0);
    uint8_t *block = malloc(BGZF_MAX_BLOCK);
    MUST(codec && block);
    for (int i = 0; i < 100; i++)
        unit_append(&inner, bgzf_block_eof, BGZF_EOF_SIZE);
    uint32_t size = bgzf_block_deflate(codec, inner.data, (uint32_t)inner.n, block);
    for (int i = 0; i < 3; i++)
        unit_append(&file, block, size);
    for (size_t begin = 0; begin < size; begin++) {
        struct frame_list list;
        list_piece(&list, &file, begin, file.n);
        check_frames(&list, &file);
        const struct bgzf_frame *found = frame_list_find(&list, begin ? size : 0);
        assert_true(begin == 0 ? found != NULL : !found || found->size == size);
    }
    free(block);
    bgzf_codec_free(codec);
    unit_free(&inner);
    unit_free(&file);
}

static void test_more_blocks_than_the_list_has_room_for(void **state)
{
    (void)state;
    struct unit_bytes file = {NULL, 0, 0};
    struct frame_list list;
    for (int i = 0; i < FRAME_LIST_MOST + 50; i++)
        unit_append(&file, bgzf_block_eof, BGZF_EOF_SIZE);
    list_piece(&list, &file, 0, file.n);
    assert_int_equal(list.n, FRAME_LIST_MOST);
    for (uint64_t i = 0; i < FRAME_LIST_MOST + 50; i++)
        assert_int_equal(frame_list_find(&list, i * BGZF_EOF_SIZE) != NULL, i < FRAME_LIST_MOST);
    unit_free(&file);
}

static void test_listed_block_is_looked_at_again(void **state)
{
    (void)state;
    struct unit_bytes file = {NULL, 0, 0};
    struct frame_list list;
    struct bgzf_frame frame = {0, 0, 0};
    for (int i = 0; i < 2; i++)
        unit_append(&file, bgzf_block_eof, BGZF_EOF_SIZE);
    frame_list_make(&list, file.data, BGZF_EOF_SIZE, 1000);
    assert_int_equal(frame_list_frame(&list, 1000, NULL, 0, &frame), BGZF_OK);
    assert_int_equal(frame.size, BGZF_EOF_SIZE);
    frame.size = 0;
    assert_int_equal(frame_list_frame(&list, 1000 + BGZF_EOF_SIZE, file.data, 27, &frame), BGZF_MORE);
    assert_int_equal(frame_list_frame(&list, 1000 + BGZF_EOF_SIZE, file.data, file.n, &frame), BGZF_OK);
    assert_int_equal(frame.size, BGZF_EOF_SIZE);
    assert_int_equal(frame_list_frame(NULL, 1000, (const uint8_t *)"plain text", 10, &frame), BGZF_NOT_GZIP);
    unit_free(&file);
}

static void test_other_bytes_give_a_list(void **state)
{
    (void)state;
    struct unit_bytes file = {NULL, 0, 0};
    struct frame_list list;
    list_piece(&list, &file, 0, 0);
    assert_int_equal(list.n, 0);
    uint64_t seed = 4;
    unit_fill(&seed, unit_more(&file, 200000), 200000);
    memset(file.data + 1000, bgzf_block_eof[0], 1000);
    list_piece(&list, &file, 0, file.n);
    assert_int_equal(list.n, 0);
    unit_append(&file, bgzf_block_eof, BGZF_EOF_SIZE);   /* too far for the piece's first block */
    list_piece(&list, &file, 0, file.n);
    assert_int_equal(list.n, 0);
    unit_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_that_begin_and_end_anywhere_miss_a_block),
        cmocka_unit_test(test_damaged_block_and_those_behind_it_are_listed),
        cmocka_unit_test(test_blocks_inside_a_block_are_taken_for_blocks),
        cmocka_unit_test(test_more_blocks_than_the_list_has_room_for),
        cmocka_unit_test(test_listed_block_is_looked_at_again),
        cmocka_unit_test(test_other_bytes_give_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
