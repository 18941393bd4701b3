# SPDX-License-Identifier: MIT
# Completion for bash of samtools-omp and bgzip-omp. The program itself lists commands and options (--complete), so this
# file needs no change when they do. It also serves the name samtools where that has no completion.

# The value that an option takes, as the help shows it.
_samtools_omp_value()
{
    case $1 in
        FMT) echo 'json tsv' ;;
        FMT*) echo 'bam cram sam sam.gz fastq fasta' ;;
        'INT|auto') echo auto ;;
        't|s') echo 't s' ;;
        '[=json]') echo json ;;
        '[=bai|csi]') echo 'bai csi' ;;
        SIZE*) echo '1G 2G 4G' ;;
        LIST) echo 'all none on pos mqual unmap cigar cigdup cigarx aux' ;;
        ORDER) echo 'txy tyx xyt yxt xty ytx xy yx' ;;
        *FILE*|*PREFIX*|BED|FASTA) ;;                    # files
        *) echo NOTHING ;;
    esac
}

_samtools_omp()
{
    local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} first=2
    local program=${COMP_WORDS[0]/#\~/$HOME} words= value= list line
    COMPREPLY=()
    if [ "${program##*/}" = bgzip-omp ]; then
        program=${program%bgzip-omp}samtools-omp command=bgzip first=1
    fi
    if [ "$COMP_CWORD" -lt "$first" ]; then
        list=$("$program" --complete 2>/dev/null)$'\nbgzip\nreport\nhelp\nversion\nview\nindex\ndepth\nfaidx\nquickcheck\n--env\n--version\n--help'
        COMPREPLY=($(compgen -W "$(cut -f 1 <<<"$list")" -- "$cur"))
        return
    fi
    if [ "$cur" = = ]; then
        cur= option=$option=
    elif [ "$option" = = ]; then
        option=${COMP_WORDS[COMP_CWORD-2]}=
    fi
    list=$("$program" --complete "$command" 2>/dev/null)
    line=$(grep -m 1 -e "^$option"$'\t' <<<"$list")
    value=$(cut -f 2 <<<"$line")
    if [ -n "$value" ] && [[ $option == *= || $value != \[* ]]; then
        words=$(_samtools_omp_value "$value")
        [ "$words" = NOTHING ] && return
    elif [[ $cur == -* ]]; then
        words=$(cut -f 1 <<<"$list")
    fi
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
    else
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}
complete -o filenames -F _samtools_omp samtools-omp bgzip-omp
complete -p samtools >/dev/null 2>&1 || complete -o filenames -F _samtools_omp samtools
