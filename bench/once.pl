#!/usr/bin/perl
# once.pl - how long whole processes take, in turns, so that whatever else the machine does hits all of them.
#
#   once.pl ROUNDS FOLDER NAME=COMMAND...
#
# COMMAND is a list of words with a bar between; "%" in it becomes the number of the round. The command
# "sync3" stands for three plain write-fsync-rename-fsync of the size of a record, in FOLDER, one right after the
# other; "paced3" for the same three with a pause of 2 ms before each, which does not count: a process that does
# something in between finds the journal's thread and the disk at rest. Prints "NAME MICROSECONDS" with the median
# of the rounds.
use strict;
use warnings;
use IO::Handle;
use POSIX ();
use Time::HiRes qw(time sleep);

my ($rounds, $folder, @jobs) = @ARGV;
my (%took, @names, %words);
for (@jobs) {
    my ($name, $command) = split /=/, $_, 2;
    push @names, $name;
    $words{$name} = [split /\|/, $command];
}

# Returns how long they took, without the pauses.
sub sync3 {
    my ($pause) = @_;
    my $took = 0;
    for my $i (1 .. 3) {
        sleep $pause if $pause;
        my $began = time;
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
        $took += time - $began;
    }
    return $took;
}

sub process {
    my @words = @_;
    my $began = time;
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        { exec @words };
        POSIX::_exit(127);
    }
    waitpid $pid, 0;
    die "@words: exit $?\n" if $? != 0;
    return time - $began;
}

for my $round (1 .. $rounds) {
    for my $name (@names) {
        my @words = map { s/%/$round/gr } @{$words{$name}};
        my $took = $words[0] eq 'sync3' ? sync3(0) : $words[0] eq 'paced3' ? sync3(0.002) : process(@words);
        push @{$took{$name}}, $took if $round > $rounds / 10;
    }
}
for my $name (@names) {
    my @sorted = sort { $a <=> $b } @{$took{$name}};
    printf "%s %.0f\n", $name, 1e6 * $sorted[@sorted / 2];
}
