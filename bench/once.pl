#!/usr/bin/perl
# once.pl - how long whole processes take, in turns, so that whatever else the machine does hits all of them.
# The order of a round is drawn anew each time: what runs right after a sync, or right after what leaves dirty
# pages behind, pays for that, and none of them should always have the same neighbour.
#
#   once.pl ROUNDS FOLDER NAME=COMMAND...
#
# COMMAND is a list of words with a bar between; "%" in it becomes the number of the round. The command
# "sync3" stands for three plain write-fsync-rename-fsync of the size of a record, in FOLDER. Prints
# "NAME MICROSECONDS" with the median of the rounds.
use strict;
use warnings;
use IO::Handle;
use List::Util 'shuffle';
use POSIX ();
use Time::HiRes 'time';

my ($rounds, $folder, @jobs) = @ARGV;
my (%took, @names, %words);
for (@jobs) {
    my ($name, $command) = split /=/, $_, 2;
    push @names, $name;
    $words{$name} = [split /\|/, $command];
}

sub sync3 {
    for my $i (1 .. 3) {
        open my $file, '>', "$folder/new" or die "$folder: $!";
        print $file 'x' x 256;
        $file->flush;
        $file->sync;
        close $file;
        rename "$folder/new", "$folder/record$i";
        my $fd = POSIX::open($folder, POSIX::O_RDONLY());
        open my $dir, '<&=', $fd;
        $dir->sync;
        close $dir;
    }
}

sub process {
    my @words = @_;
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        { exec @words };
        POSIX::_exit(127);
    }
    waitpid $pid, 0;
    die "@words: exit $?\n" if $? != 0;
}

for my $round (1 .. $rounds) {
    for my $name (shuffle @names) {
        my @words = map { s/%/$round/gr } @{$words{$name}};
        my $began = time;
        $words[0] eq 'sync3' ? sync3() : process(@words);
        push @{$took{$name}}, time - $began if $round > $rounds / 10;
    }
}
for my $name (@names) {
    my @sorted = sort { $a <=> $b } @{$took{$name}};
    printf "%s %.0f\n", $name, 1e6 * $sorted[@sorted / 2];
}
