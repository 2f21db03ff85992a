#!/usr/bin/perl
# freeze.pl PID SECONDS - holds a process still by tracing it, so that SIGCONT does not wake it.
# Prints "frozen", or why it cannot.
use strict;
use warnings;
use POSIX ();

my ($pid, $seconds) = @ARGV;
my ($seize, $interrupt) = (0x4206, 0x4207);
my %ptrace = (x86_64 => 101, aarch64 => 117);
my $number = $ptrace{(POSIX::uname())[4]};
$| = 1;
if (!$number) {
    print "unknown machine\n";
} elsif (syscall($number, $seize, $pid + 0, 0, 0) < 0
    || syscall($number, $interrupt, $pid + 0, 0, 0) < 0)
{
    print "ptrace: $!\n";
} else {
    print "frozen\n";
    # Its parent cannot reap it before we did. 0x40000000: __WALL, for processes we only trace.
    alarm $seconds;
    1 while waitpid($pid, 0x40000000) == $pid && ($? & 0xff) == 0x7f;
}
