# SPDX-License-Identifier: MIT
# bash completion of `samtools-omp sort` and of bgzip-omp, which bash-completion loads on their first completion, or if
# sourced. It takes the name samtools where that has no completion. Other commands complete as file names.
_samtools_omp()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=
    COMPREPLY=()
    if [ "${COMP_WORDS[0]##*/}" = bgzip-omp ] || { [ "$COMP_CWORD" -gt 1 ] && [ "${COMP_WORDS[1]}" = bgzip ]; }; then
        case $prev in
            -l|--compress-level) words='-1 0 1 2 3 4 5 6 7 8 9' ;;
            -@|--threads) words=auto ;;
            -b|-s|--offset|--size) return ;;
            *) [[ $cur == -* ]] && words='-b -c -d -f -g -h -i -I -k -l -o -r -s -t -@ --offset --binary --stdout --decompress
                --force --rebgzip --help --index --index-name --keep --compress-level --output --reindex --size --test --threads --version' ;;
        esac
    elif [ "$COMP_CWORD" -eq 1 ]; then
        words='sort collate merge fixmate markdup sormadup report bgzip view index flagstat stats idxstats depth fastq faidx quickcheck help version --env --env=csh --env=fish --help --version --version-only'
    elif [ "${COMP_WORDS[1]}" = sort ]; then
        case $prev in
            -O|--output-fmt) words='bam cram sam sam.gz fastq fasta' ;;
            -l) words='0 1 2 3 4 5 6 7 8 9' ;;
            -m|--total-memory|--size-hint) words='768M 1G 2G 4G' ;;
            -@|--threads) words=auto ;;
            -K|-w|-t|--stats-args|--verbosity|--input-fmt-option|--output-fmt-option) return ;;
            *) [[ $cur == -* ]] && words='-n -N -t -M -I -K -w -R -H -l -u -m -@ -o -O -T -h
                --template-coordinate --picard --check --copy-blocks --checksum= --checksum=samtools: --stats= --stats-args --flagstat= --idxstats= --verify --add-input --write-index --write-index=bai --write-index=csi
                --threads --output-fmt --output-fmt-option --input-fmt-option --reference
                --total-memory --size-hint --tmpdir-env --report --report= --trace= --plan --plan=json --progress --no-progress --no-PG --verbosity --help' ;;
        esac
    elif [ "${COMP_WORDS[1]}" = collate ]; then
        case $prev in
            --output-fmt) words='bam cram sam sam.gz fastq fasta' ;;
            -l) words='0 1 2 3 4 5 6 7 8 9' ;;
            --total-memory) words='1G 2G 4G' ;;
            -@|--threads) words=auto ;;
            -n|-r|--stats-args|--verbosity|--input-fmt-option|--output-fmt-option) return ;;
            *) [[ $cur == -* ]] && words='-o -O -T -n -l -u -f -r -@ -h --threads --output-fmt --output-fmt-option --input-fmt-option
                --reference --total-memory --checksum= --stats= --stats-args --flagstat= --idxstats= --verify --report --report= --trace= --progress --no-progress --no-PG --verbosity --help' ;;
        esac
    elif [ "${COMP_WORDS[1]}" = merge ]; then
        case $prev in
            -O|--output-fmt) words='bam cram sam sam.gz fastq fasta' ;;
            -l) words='0 1 2 3 4 5 6 7 8 9' ;;
            --total-memory) words='1G 2G 4G' ;;
            -@|--threads) words=auto ;;
            -s|-t|-R|--stats-args|--verbosity|--input-fmt-option|--output-fmt-option) return ;;
            *) [[ $cur == -* ]] && words='-n -N -t --template-coordinate -o -f -b -h -c -p -r -s -R -L -X -O -l -u -1 -@ --threads
                --copy-blocks --write-index --write-index=bai --write-index=csi --output-fmt --output-fmt-option --input-fmt-option --reference
                --plan --plan=json --total-memory --checksum= --stats= --stats-args --flagstat= --idxstats= --verify --report --report= --trace= --progress --no-progress --no-PG --verbosity --help' ;;
        esac
    elif [ "${COMP_WORDS[1]}" = fixmate ]; then
        case $prev in
            -O|--output-fmt) words='bam cram sam sam.gz fastq fasta' ;;
            -z|--sanitize) words='all none on pos mqual unmap cigar cigdup cigarx aux' ;;
            --total-memory) words='1G 2G 4G' ;;
            -@|--threads) words=auto ;;
            --stats-args|--verbosity|--input-fmt-option|--output-fmt-option) return ;;
            *) [[ $cur == -* ]] && words='-r -p -c -m -M -z -u -O -@ --sanitize --threads
                --output-fmt --output-fmt-option --input-fmt-option --reference
                --total-memory --checksum= --stats= --stats-args --flagstat= --idxstats= --verify --report --report= --trace= --progress --no-progress --no-PG --verbosity --help' ;;
        esac
    elif [ "${COMP_WORDS[1]}" = stats ]; then
        case $prev in
            --total-memory) words='1G 2G 4G' ;;
            -@|--threads) words=auto ;;
            -f|-F|-l|-I|-c|-g|-i|-m|-q|-S|--GC-depth|--ref-stats-chunk|--verbosity|--input-fmt-option) return ;;
            *) [[ $cur == -* ]] && words='-f -F -d -l -I -t -X -c -g -i -m -p -q -r -S -P -x -s -@ -h --required-flag --filtering-flag --remove-dups
                --read-length --id --target-regions --customized-index --coverage --cov-threshold --GC-depth --insert-size --most-inserts
                --remove-overlaps --trim-quality --ref-seq --ref-stats --ref-stats-chunk --split --split-prefix --sparse --sam --threads
                --input-fmt-option --reference --total-memory --report --report= --trace= --progress --no-progress --verbosity --help' ;;
        esac
    elif [ "${COMP_WORDS[1]}" = flagstat ] || [ "${COMP_WORDS[1]}" = idxstats ]; then
        case $prev in
            -O|--output-fmt) words='json tsv' ;;
            --total-memory) words='1G 2G 4G' ;;
            -@|--threads) words=auto ;;
            --verbosity|--input-fmt-option) return ;;
            *) [[ $cur == -* ]] && words='-@ --threads --input-fmt-option --total-memory --report --report= --trace= --progress --no-progress --verbosity --help'
               [[ $cur == -* && ${COMP_WORDS[1]} == flagstat ]] && words+=' -O --output-fmt'
               [[ $cur == -* && ${COMP_WORDS[1]} == idxstats ]] && words+=' -X' ;;
        esac
    elif [ "${COMP_WORDS[1]}" = markdup ]; then
        case $prev in
            -O|--output-fmt) words='bam cram sam sam.gz fastq fasta' ;;
            -m|--mode) words='t s' ;;
            -d) words='100 2500' ;;
            --coords-order) words='txy tyx xyt yxt xty ytx xy yx' ;;
            --total-memory) words='1G 2G 4G' ;;
            -@|--threads) words=auto ;;
            -l|--read-coords|--barcode-tag|--barcode-rgx|--umi-separator|--stats-args|--verbosity|--input-fmt-option|--output-fmt-option) return ;;
            *) [[ $cur == -* ]] && words='-r -l -S -s -f -T -d -t -c -m -u -O -@ --mode --include-fails --no-multi-dup --read-coords --coords-order
                --barcode-tag --barcode-name --barcode-rgx --move-umi-to-tag --umi-separator --use-read-groups --json --duplicate-count --threads
                --write-index --write-index=bai --write-index=csi --output-fmt --output-fmt-option --input-fmt-option --reference
                --plan --plan=json --total-memory --checksum= --stats= --stats-args --flagstat= --idxstats= --verify --report --report= --trace= --progress --no-progress --no-PG --verbosity --help' ;;
        esac
    elif [ "${COMP_WORDS[1]}" = sormadup ]; then
        case $prev in
            -O|--output-fmt) words='bam cram sam sam.gz fastq fasta' ;;
            -l) words='0 1 2 3 4 5 6 7 8 9' ;;
            -m|--total-memory|--size-hint) words='768M 1G 2G 4G' ;;
            -@|--threads) words=auto ;;
            --fixmate-args|--markdup-args|--stats-args|--verbosity|--input-fmt-option|--output-fmt-option) return ;;
            *) [[ $cur == -* ]] && words='-o -O -l -u -m -@ -T -h --add-input --collate --fixmate-args --markdup-args --tmpdir-env
                --write-index --write-index=bai --write-index=csi --threads --output-fmt --output-fmt-option --input-fmt-option --reference
                --plan --plan=json --total-memory --size-hint --checksum= --stats= --stats-args --flagstat= --idxstats= --verify --report --report= --trace= --progress --no-progress --no-PG --verbosity --help' ;;
        esac
    fi
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
    else
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}
complete -o filenames -F _samtools_omp samtools-omp bgzip-omp
complete -p samtools >/dev/null 2>&1 || complete -o filenames -F _samtools_omp samtools
