/*
 * jsonc_parse.c - the yardstick of event parsing: json-c on the same bytes.
 *
 * jsonc_parse FILE [TIMES]
 *
 * Parses the file into json-c's tree that often and prints the CPU seconds it took.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    long times = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    char *text = NULL;
    size_t n = 0;
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;

    if (f == NULL || getdelim(&text, &n, '\0', f) < 0) {
        fprintf(stderr, "usage: jsonc_parse FILE [TIMES]\n");
        return 2;
    }
    fclose(f);
    for (long i = 0; i < times; i++) {
        struct json_object *o = json_tokener_parse(text);

        if (o == NULL)
            return 1;
        json_object_put(o);
    }
    printf("%.6f\n", (double)clock() / CLOCKS_PER_SEC);
    free(text);
    return 0;
}
