#!/usr/bin/perl
# herd.pl COUNT FILE - starts COUNT processes that are hard to end: each is forked twice, has a
# session of its own and ignores TERM. Writes their pids to FILE, one per line, and then sleeps,
# ignoring TERM like them. After two minutes they end by themselves, in case a test failed to end
# them.
use strict;
use warnings;
use POSIX ();

my ($count, $file) = @ARGV;
$SIG{TERM} = 'IGNORE';
open my $out, '>>', $file or die "$file: $!\n";
$out->autoflush(1);
for (1 .. $count) {
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        POSIX::setsid();
        my $inner = fork // die "fork: $!\n";
        POSIX::_exit(0) if $inner;
        alarm 120;
        print $out "$$\n";
        sleep 1 while 1;
    }
    waitpid $pid, 0;
}
alarm 120;
print $out "$$\n";
sleep 1 while 1;
