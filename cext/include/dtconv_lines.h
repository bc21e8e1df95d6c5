/* Lines of rows that are to be loaded, taken a few at a time: for lists that micro-kernels prefetch on the way. */
#ifndef DTCONV_LINES_H
#define DTCONV_LINES_H

#include <stddef.h>
#include <stdint.h>

/* `lines` of each row, from number `first` on, row after row; `left` of them.  Row i is at rows[i], or, where that is
 * NULL, at start + i * pitch. */
typedef struct {
    const void *const *rows;
    const char *start;
    int64_t pitch, first, lines, left;
    int64_t row, line; /* the next one */
} dtconv_lines;

/* The next lines, at most `most`, to a list.  Returns their number. */
static inline int64_t dtconv_take_lines(dtconv_lines *from, int64_t most, const void **list) {
    const int64_t count = most < from->left ? most : from->left;
    for (int64_t i = 0; i < count;) {
        const int64_t rest = from->lines - from->line, run = count - i < rest ? count - i : rest;
        const char *row = from->rows ? from->rows[from->row] : from->start + from->row * from->pitch;
        const char *line = row + (from->first + from->line) * 64;
        for (const int64_t end = i + run; i < end; i++, line += 64) list[i] = line;
        from->line += run;
        if (from->line == from->lines) from->line = 0, from->row++;
    }
    from->left -= count;
    return count;
}

#endif
