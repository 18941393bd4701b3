# SPDX-License-Identifier: MIT
# Completion for fish of samtools-omp and bgzip-omp. The program itself lists commands and options (--complete).

# Offers what an option takes, as the help shows it; begun: what is typed of it.
function __samtools_omp_value -a value begun
    switch $value
        case FMT
            printf '%s\n' json tsv
        case 'FMT*'
            printf '%s\n' bam cram sam sam.gz fastq fasta
        case 'INT|auto'
            echo auto
        case 't|s'
            printf '%s\n' t s
        case '*=json*'
            echo json
        case '*=bai*'
            printf '%s\n' bai csi
        case 'SIZE*'
            printf '%s\n' 1G 2G 4G
        case LIST
            printf '%s\n' all none on pos mqual unmap cigar cigdup cigarx aux
        case ORDER
            printf '%s\n' txy tyx xyt yxt xty ytx xy yx
        case '*FILE*' '*PREFIX*' BED FASTA
            __fish_complete_path $begun
    end
end

# The value of an option, of the rows that --complete prints.
function __samtools_omp_value_of -a option
    for row in $argv[2..-1]
        set -l part (string split \t -- $row)
        test "$part[1]" = "$option"; and echo $part[2]; and return
    end
end

function __samtools_omp_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -l subcommand $words[2]
    if string match -q '*bgzip-omp' -- $program
        set program (string replace -r 'bgzip-omp$' samtools-omp -- $program)
        set subcommand bgzip
    else if test (count $words) -lt 2
        $program --complete 2>/dev/null | string replace \t\t \t
        printf '%s\t%s\n' bgzip 'compress files in blocks, or decompress them' report 'compare two reports'
        printf '%s\n' help version view index depth faidx quickcheck --env --version --help
        return
    end
    set -l rows ($program --complete $subcommand 2>/dev/null)
    set -l option (string match -r '^--[^=]*=' -- $current)
    set -l value (__samtools_omp_value_of "$words[-1]" $rows)
    if test -n "$option"
        set value (__samtools_omp_value_of $option $rows)
        printf "$option%s\n" (__samtools_omp_value "$value" (string replace -- $option '' $current))
    else if test -n "$value"; and not string match -qr '^\[' -- $value
        __samtools_omp_value $value $current
    else if string match -q -- '-*' $current
        printf '%s\n' $rows | string replace -r '\t.*\t' \t
    else
        __fish_complete_path $current
    end
end

for name in samtools-omp bgzip-omp
    complete -c $name -f -a '(__samtools_omp_complete)'
end
