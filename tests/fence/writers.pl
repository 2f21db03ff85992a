#!/usr/bin/perl
# writers.pl DIALECT fenced|plain SECONDS CLIENT... - 64 clients of a database at once, each with random
# tokens, each reading a counter and writing it back with one more (in Redis: writing its token). What a
# client prints is kept in the current folder.
use strict;
use warnings;
use Time::HiRes qw(time);

my ($dialect, $kind, $seconds, @client) = @ARGV;
my $writers = 64;
my $spread = 2000;
my $start = time;
# With a fence for a minute, beside other tests: not more than the machine can bear.
my $pause = $kind eq 'fenced' ? 0.5 : 0.02;

# One transaction. The value goes through the client, as it does in a program.
sub transaction {
    my ($writer, $token) = @_;
    if ($dialect eq 'redis') {
        return "SET plain $token\n" if $kind ne 'fenced';
        return "EVALSHA $ENV{SHA} 2 fenced holdfast:{fenced}:fence set $token \"\" $token 0\n";
    }
    my $row = "INSERT INTO history (token, writer) VALUES ($token, $writer);";
    if ($dialect eq 'postgres') {
        my $enter = $kind eq 'fenced' ? "CALL holdfast_fence.enter('counter', $token);\n" : '';
        return "BEGIN;\n${enter}SELECT v FROM counter \\gset\n"
            . "UPDATE counter SET v = :v + 1;\n$row\nCOMMIT;\n";
    }
    if ($dialect eq 'mariadb') {
        my $enter = $kind eq 'fenced' ? "CALL holdfast_enter('counter', $token);" : '';
        return "ROLLBACK; BEGIN; $enter\nSELECT v INTO \@v FROM counter;\n"
            . "UPDATE counter SET v = \@v + 1;\n$row\nCOMMIT;\n";
    }
    my $read = "DELETE FROM seen; INSERT INTO seen SELECT v FROM counter;\n";
    my $write = "UPDATE counter SET v = (SELECT v FROM seen) + 1;\n$row\n";
    return "$read$write" if $kind ne 'fenced';
    return "BEGIN;\nINSERT INTO holdfast_enter (resource, token) VALUES ('counter', $token);\n$read$write"
        . "DELETE FROM holdfast_entered;\nCOMMIT;\nROLLBACK;\n";
}

my @pids;
for my $writer (1 .. $writers) {
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        srand($writer);
        open STDOUT, '>', "writer.$writer" or die;
        open STDERR, '>', "errors.$writer" or die;
        open my $to, '|-', @client or die;
        $to->autoflush(1);
        print $to "PRAGMA foreign_keys = ON;\nCREATE TEMP TABLE seen (v);\n" if $dialect eq 'sqlite';
        local $SIG{PIPE} = 'IGNORE';
        while (time - $start < $seconds) {
            my $token = 1 + int(1000 * (time - $start)) + int(rand $spread);
            print $to transaction($writer, $token) or last;
            # Not further ahead than the client can follow, or the tokens get old in the pipe.
            select undef, undef, undef, $pause + rand 0.1;
        }
        close $to;
        exit 0;
    }
    push @pids, $pid;
}
waitpid $_, 0 for @pids;
