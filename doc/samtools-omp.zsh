#compdef samtools-omp bgzip-omp
# SPDX-License-Identifier: MIT
# Completion for zsh. The program itself lists commands and options (--complete).

# Offers what an option takes, as the help shows it.
_samtools_omp_value() {
    case $1 in
        (FMT) compadd json tsv ;;
        (FMT*) compadd bam cram sam sam.gz fastq fasta ;;
        ('INT|auto') compadd auto ;;
        ('t|s') compadd t s ;;
        ('[=json]') compadd json ;;
        ('[=bai|csi]') compadd bai csi ;;
        (SIZE*) compadd 1G 2G 4G ;;
        (LIST) compadd all none on pos mqual unmap cigar cigdup cigarx aux ;;
        (ORDER) compadd txy tyx xyt yxt xty ytx xy yx ;;
        (*FILE*|*PREFIX*|BED|FASTA) _files ;;
        (*) _message "$1" ;;
    esac
}

_samtools_omp() {
    local program=${(Q)words[1]} command=${words[2]} option=${words[CURRENT-1]} line
    local -a rows shown glued
    local -A values
    integer first=3
    if [[ ${program:t} == bgzip-omp ]]; then
        program=${program%bgzip-omp}samtools-omp command=bgzip first=2
    fi
    program=${program/#\~/$HOME}
    if (( CURRENT < first )); then
        rows=(${(f)"$($program --complete 2>/dev/null)"})
        shown=(${rows/$'\t\t'/:} 'bgzip:compress files in blocks, or decompress them' 'report:compare two reports'
               help version view index depth faidx quickcheck --env --version --help)
        _describe command shown
        return
    fi
    rows=("${(@f)$($program --complete $command 2>/dev/null)}")
    for line in $rows; do
        local -a part=("${(@ps:\t:)line}")
        values[$part[1]]=$part[2]
        [[ $part[1] == *= ]] && glued+=("${part[1]}:$part[3]") || shown+=("${part[1]}:$part[3]")
    done
    if [[ $words[CURRENT] == --*=* ]]; then
        option=${words[CURRENT]%%=*}=
        compset -P '*='
        _samtools_omp_value "$values[$option]"
    elif [[ -n $values[$option] && $values[$option] != \[* ]]; then
        _samtools_omp_value "$values[$option]"
    elif [[ $words[CURRENT] == -* ]]; then
        _describe -o option shown -- glued -S ''
    else
        _files
    fi
}

_samtools_omp "$@"
