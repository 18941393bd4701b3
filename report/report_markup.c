/* SPDX-License-Identifier: MIT */
#include "report/report_markup.h"

/* Pictures are stretched to the available width; their labels are not, so these are text on top of them. */
static const char style[] =
    ":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b1f26;--soft:#5c6675;--line:#d5dae1;"
    "--idle:#e9ecf1;--wait:#aab3c0;--other:#465161;--hint:#fff6da;--hint-line:#ecc94b;--good:#1c7c4a;--bad:#b3362b}"
    "@media(prefers-color-scheme:dark){:root{--page:#12151a;--card:#1b2027;--ink:#e8ebf0;--soft:#a3adbb;"
    "--line:#39414d;--idle:#282f39;--wait:#647082;--other:#c6cdd8;--hint:#2d2813;--hint-line:#a98a1f;"
    "--good:#5fd097;--bad:#f08a7f}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);"
    "font:15px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    "main{max-width:1160px;margin:0 auto;padding:28px 20px 40px}"
    "h1{font-size:26px;line-height:1.2;font-weight:650;margin:2px 0 4px;overflow-wrap:anywhere}"
    "h2,summary{font-size:16px;font-weight:700;margin:0 0 10px}summary{cursor:pointer;margin:0}"
    "details[open] summary{margin-bottom:10px}.more{margin-top:8px}"
    ".more summary{font-size:14px;font-weight:400;color:var(--soft)}"
    "header p{margin:0;color:var(--soft);overflow-wrap:anywhere}header p:last-child{margin-bottom:14px}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(138px,1fr));gap:10px}"
    ".tiles div,section{background:var(--card);border:1px solid var(--line);border-radius:10px}"
    ".tiles div{padding:9px 13px}.tiles b{display:block;font-size:22px;font-weight:650}"
    ".tiles span{color:var(--soft);font-size:13px}"
    "section{margin-top:12px;padding:14px 18px}"
    "section.verdict{margin:0 0 12px}.verdict p{margin:0;font-size:17px}"
    "section.advice{background:var(--hint);border-color:var(--hint-line)}.advice p{margin:0}.advice p+p{margin-top:6px}"
    ".facts,.words{display:grid;grid-template-columns:repeat(auto-fill,minmax(230px,1fr));gap:8px 20px;margin:0}"
    ".words{grid-template-columns:repeat(auto-fill,minmax(300px,1fr))}"
    "dt{color:var(--soft);font-size:13px}.words dt{color:var(--ink);font-weight:600;font-size:14px}"
    "dd{margin:0;overflow-wrap:anywhere}.words dd{color:var(--soft);font-size:14px}"
    ".picture{display:grid;grid-template-columns:minmax(0,1fr) 225px;gap:24px}"
    ".legend{list-style:none;margin:0;padding:0;font-size:13px;line-height:1.35;color:var(--soft)}"
    ".legend li{padding:0 0 5px 21px;position:relative}.legend b{color:var(--ink);font-weight:600}"
    ".legend i{position:absolute;left:0;top:2px}"
    "i{display:inline-block;width:12px;height:12px;border-radius:3px;border:1px solid rgba(128,128,128,.45)}"
    ".plot,.axis{position:relative;margin:0 16px 0 72px;font-size:12px;color:var(--soft)}.plot{margin-top:20px}"
    ".plot svg{display:block;width:100%;height:100%;overflow:visible}.plot.area svg{background:var(--idle)}"
    ".plot span,.axis span{position:absolute;white-space:nowrap;line-height:1}"
    ".plot .y{right:100%;padding-right:8px;transform:translateY(-50%)}"
    ".plot .what{left:0;bottom:calc(100% + 4px);color:var(--ink)}"
    ".plot .what b{font-weight:600}"
    ".plot .phase{bottom:calc(100% + 4px);color:var(--ink);padding-left:5px;border-left:1px dashed var(--soft)}"
    ".axis{height:20px}.axis span{top:6px;transform:translateX(-50%)}"
    ".grid{stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke;fill:none}"
    ".mark{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3;vector-effect:non-scaling-stroke;fill:none}"
    ".line{stroke-width:1.7;vector-effect:non-scaling-stroke;fill:none;stroke-linejoin:round}"
    ".row{fill:var(--idle)}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th{font-weight:500;color:var(--soft);font-size:13px;vertical-align:bottom}"
    "th,td{padding:4px 8px;text-align:right}"
    "tbody td{border-top:1px solid var(--line)}th:first-child,td:first-child{text-align:left;padding-left:0}"
    "td:first-child i{margin-right:9px}td.bar{width:14%;min-width:70px;padding-right:0}"
    "td.bar i{display:block;height:11px;min-width:2px;border:0}.good{color:var(--good)}.bad{color:var(--bad)}"
    ".two{table-layout:fixed}.two th:first-child{width:34%}.two td{overflow-wrap:anywhere}"
    "footer{margin-top:14px;color:var(--soft);font-size:13px;overflow-wrap:anywhere}"
    "@media(max-width:900px){.picture{grid-template-columns:minmax(0,1fr);gap:14px}"
    ".legend{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:2px 14px}}"
    /* Too narrow for a table: each row becomes a card, and each cell names its column. */
    "@media(max-width:760px){main{padding:16px 10px 30px}h1{font-size:21px}section{padding:12px}"
    ".plot,.axis{margin-left:62px}.odd{display:none}.words{grid-template-columns:1fr}thead{display:none}"
    "table,tbody{display:block}"
    "tr{display:grid;grid-template-columns:1fr 1fr;gap:1px 18px;padding:8px 0;border-top:1px solid var(--line)}"
    ".two tr{grid-template-columns:3fr 3fr 2fr}"
    "tbody td{display:flex;justify-content:space-between;border:0;padding:0;gap:8px;font-size:14px;"
    "overflow-wrap:anywhere}"
    "td:first-child,td.bar{grid-column:1/-1}td:first-child{font-weight:600;justify-content:flex-start;"
    "align-items:center}"
    "td:empty{display:none}td[data-label]::before{content:attr(data-label);color:var(--soft)}"
    "td.bar{width:auto;padding-top:3px}}";

void report_markup_text(FILE *to, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", to); break;
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*text, to);
        }
}

void report_markup_begin(FILE *to, const char *of, const char *headline, const char *first, const char *between,
                         const char *second)
{
    fprintf(to, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>%s: ", of);
    report_markup_text(to, headline);
    fprintf(to, "</title>\n<style>%s</style></head>\n<body><main>\n<header><p>%s</p><h1>", style, of);
    report_markup_text(to, headline);
    fputs("</h1><p>", to);
    report_markup_text(to, first);
    fputs(between, to);
    report_markup_text(to, second);
    fputs("</p></header>\n", to);
}

void report_markup_fold(FILE *to, const char *summary)
{
    fprintf(to, "<section><details><summary>%s</summary>\n", summary);
}

void report_markup_end(FILE *to, const char *version, const char *second)
{
    fputs("<footer>samtools-omp ", to);
    report_markup_text(to, version);
    fputs(" &middot; ", to);
    report_markup_text(to, second);
    fputs("</footer>\n</main></body></html>\n", to);
}

void report_markup_word(FILE *to, const char *word, const char *means)
{
    fprintf(to, "<div><dt>%s</dt><dd>%s</dd></div>\n", word, means);
}
