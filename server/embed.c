/*
 * embed.c - files taken in by the assembler, at paths relative to the root of the tree.
 *
 * A table of bytes in C would be the portable way, and makes the compiler read 20 times
 * as much text.
 */
#include "server/embed.h"

/* Top-level assembly; the symbols stay local to this object but for the linker. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        ".global tp_embed_openapi_start\n"
        ".hidden tp_embed_openapi_start\n"
        "tp_embed_openapi_start:\n"
        ".incbin \"openapi.yaml\"\n"
        ".global tp_embed_openapi_end\n"
        ".hidden tp_embed_openapi_end\n"
        "tp_embed_openapi_end:\n"
        ".byte 0\n"
        ".previous\n");

extern const char tp_embed_openapi_start[];
extern const char tp_embed_openapi_end[];

struct tp_str tp_embed_openapi(void)
{
    return (struct tp_str){tp_embed_openapi_start,
                           (size_t)(tp_embed_openapi_end - tp_embed_openapi_start)};
}
